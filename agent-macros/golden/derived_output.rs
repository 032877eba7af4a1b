#[allow(
    dead_code,
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    single_use_lifetimes,
    unreachable_pub,
    unused_qualifications,
    unused_lifetimes,
    unused_variables,
    unused_results,
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    clippy::restriction
)]
const _: () = {
    type __Output0 = ::agent::__private::OutputField<
        f64,
        {
            #[allow(unused_imports)]
            use ::agent::__private::{NoOutputSchema as _, SchemaUnknown as _};
            ::agent::__private::output_from(
                ::agent::__private::Probe::<f64>::DESCRIBED,
                ::agent::__private::Probe::<f64>::OUTPUT,
            )
        },
    >;
    type __Output1 = ::agent::__private::OutputField<
        Sensor,
        {
            #[allow(unused_imports)]
            use ::agent::__private::{NoOutputSchema as _, SchemaUnknown as _};
            ::agent::__private::output_from(
                ::agent::__private::Probe::<Sensor>::DESCRIBED,
                ::agent::__private::Probe::<Sensor>::OUTPUT,
            )
        },
    >;
    type __Field0 = Sensor;
    const _: fn() = || ::agent::__private::output::<Sensor, Sensor>();
    const _: () = {
        #[allow(unused_imports)]
        use ::agent::__private::{From as _, Into as _, Some};
        #[derive(
            ::agent::__private::schemars::JsonSchema,
            ::agent::__private::serde::Serialize
        )]
        #[schemars(description = "What was measured.")]
        #[serde(crate = "::agent::__private::serde")]
        #[schemars(crate = "::agent::__private::schemars")]
        #[serde(remote = "Reading")]
        #[serde(
            bound(serialize = "for<'__granted> __Field0: ::agent::__private::OutputType")
        )]
        pub struct __Mirror {
            #[schemars(with = "__Output0")]
            #[schemars(description = "Degrees.")]
            degrees: f64,
            #[schemars(with = "__Output1")]
            sensor: Sensor,
        }
        type __Described = <::agent::__private::OwnType<
            {
                #[allow(unused_imports)]
                use ::agent::__private::SchemaUnknown as _;
                ::agent::__private::Probe::<__Mirror>::DESCRIBED
            },
        > as ::agent::__private::OrStandIn<__Mirror>>::Field;
        #[automatically_derived]
        impl ::agent::__private::ResultSchema for Reading {
            type Described = __Described;
        }
        #[automatically_derived]
        impl ::agent::__private::serde::Serialize for Reading {
            fn serialize<__S>(
                &self,
                serializer: __S,
            ) -> ::agent::__private::Result<__S::Ok, __S::Error>
            where
                __S: ::agent::__private::serde::Serializer,
            {
                #[allow(unused_imports)]
                use ::agent::__private::NotWritten as _;
                <__Mirror>::serialize(self, serializer)
            }
        }
    };
};
