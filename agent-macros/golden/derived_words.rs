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
    const _: () = {
        #[allow(unused_imports)]
        use ::agent::__private::{From as _, Into as _, Some};
        #[derive(
            ::agent::__private::serde::Deserialize,
            ::agent::__private::schemars::JsonSchema,
            ::agent::__private::serde::Serialize
        )]
        #[serde(crate = "::agent::__private::serde")]
        #[schemars(crate = "::agent::__private::schemars")]
        #[schemars(transform = ::agent::__private::closed_set)]
        #[serde(remote = "Unit")]
        enum __Mirror {
            #[schemars(description = "Degrees.")]
            #[schemars(extend("x-word" = true))]
            Celsius,
            #[schemars(extend("x-word" = true))]
            Fahrenheit,
        }
        #[automatically_derived]
        impl<'de> ::agent::__private::serde::Deserialize<'de> for Unit {
            fn deserialize<__D>(
                deserializer: __D,
            ) -> ::agent::__private::Result<Self, __D::Error>
            where
                __D: ::agent::__private::serde::Deserializer<'de>,
            {
                #[allow(unused_imports)]
                use ::agent::__private::NotRead as _;
                <__Mirror>::deserialize(deserializer)
            }
        }
        type __Described = <::agent::__private::OwnType<
            {
                #[allow(unused_imports)]
                use ::agent::__private::SchemaUnknown as _;
                ::agent::__private::Probe::<__Mirror>::DESCRIBED
            },
        > as ::agent::__private::OrStandIn<__Mirror>>::Field;
        #[automatically_derived]
        impl ::agent::__private::schemars::JsonSchema for Unit {
            fn inline_schema() -> ::agent::__private::bool {
                <__Described as ::agent::__private::schemars::JsonSchema>::inline_schema()
            }
            fn schema_name() -> ::agent::__private::Cow<
                'static,
                ::agent::__private::str,
            > {
                <__Described as ::agent::__private::schemars::JsonSchema>::schema_name()
            }
            fn schema_id() -> ::agent::__private::Cow<'static, ::agent::__private::str> {
                <__Described as ::agent::__private::schemars::JsonSchema>::schema_id()
            }
            fn json_schema(
                generator: &mut ::agent::__private::schemars::SchemaGenerator,
            ) -> ::agent::__private::schemars::Schema {
                <__Described as ::agent::__private::schemars::JsonSchema>::json_schema(
                    generator,
                )
            }
            fn _schemars_private_non_optional_json_schema(
                generator: &mut ::agent::__private::schemars::SchemaGenerator,
            ) -> ::agent::__private::schemars::Schema {
                <__Described as ::agent::__private::schemars::JsonSchema>::_schemars_private_non_optional_json_schema(
                    generator,
                )
            }
            fn _schemars_private_is_option() -> ::agent::__private::bool {
                <__Described as ::agent::__private::schemars::JsonSchema>::_schemars_private_is_option()
            }
        }
        #[automatically_derived]
        impl ::agent::__private::ToolArgs for Unit {
            const OBJECT: ::agent::__private::bool = false;
            fn __json(
                &self,
            ) -> ::agent::__private::Option<::agent::__private::serde_json::Value> {
                #[allow(unused_imports)]
                use ::agent::__private::NotWritten as _;
                <__Mirror>::serialize(
                        self,
                        ::agent::__private::serde_json::value::Serializer,
                    )
                    .ok()
            }
        }
    };
};
