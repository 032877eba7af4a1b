/// How warm it is.
///
/// # Errors
/// When there is no station.
#[allow(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "the signature is that of a tool"
)]
pub async fn temperature(
    city: String,
    decimals: u8,
    words: &[String],
    db: &Database,
    cx: &ToolContext,
) -> Result<Reading, Missing> {
    body
}
#[doc(hidden)]
#[allow(
    dead_code,
    non_camel_case_types,
    missing_debug_implementations,
    missing_copy_implementations,
    unreachable_pub,
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    clippy::restriction
)]
pub struct temperature {}
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
    #[automatically_derived]
    impl ::agent::__private::StaticTool for temperature {
        const NAME: &'static ::agent::__private::str = "temperature";
        fn entry() -> ::agent::__private::Entry {
            type __OwnType0 = ::agent::__private::OwnType<
                {
                    #[allow(unused_imports)]
                    use ::agent::__private::ArgumentUnknown as _;
                    ::agent::__private::Probe::<String>::ARGUMENT
                },
            >;
            type __OwnType1 = ::agent::__private::OwnType<
                {
                    #[allow(unused_imports)]
                    use ::agent::__private::ArgumentUnknown as _;
                    ::agent::__private::Probe::<u8>::ARGUMENT
                },
            >;
            type __OwnType2 = ::agent::__private::OwnType<
                {
                    #[allow(unused_imports)]
                    use ::agent::__private::ArgumentUnknown as _;
                    ::agent::__private::Probe::<::std::vec::Vec<String>>::ARGUMENT
                },
            >;
            fn __value0() -> u8 {
                1
            }
            fn __default0() -> <::agent::__private::OwnType<
                {
                    #[allow(unused_imports)]
                    use ::agent::__private::ArgumentUnknown as _;
                    ::agent::__private::Probe::<u8>::ARGUMENT
                },
            > as ::agent::__private::OrStandIn<u8>>::Field {
                <::agent::__private::OwnType<
                    {
                        #[allow(unused_imports)]
                        use ::agent::__private::ArgumentUnknown as _;
                        ::agent::__private::Probe::<u8>::ARGUMENT
                    },
                > as ::agent::__private::OrStandIn<u8>>::take(__value0())
            }
            fn __show0(schema: &mut ::agent::__private::schemars::Schema) {
                #[allow(unused_imports)]
                use ::agent::__private::JsonUnknown as _;
                ::agent::__private::show_default(
                    schema,
                    ::agent::__private::DefaultValue(__default0()).json(),
                )
            }
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::SortUnknown as _;
                ::agent::__private::Probe::<u8>::SORT.range()
            };
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::SortUnknown as _;
                ::agent::__private::Probe::<u8>::SORT.end(0i128, "0")
            };
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::SortUnknown as _;
                ::agent::__private::Probe::<u8>::SORT.end(3i128, "3")
            };
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::AdviceUnknown as _;
                ::agent::__private::advise(::agent::__private::Probe::<String>::BY_VALUE)
            };
            const _: fn() = || ::agent::__private::argument::<
                <::agent::__private::ReplacedType<
                    {
                        #[allow(unused_imports)]
                        use ::agent::__private::AdviceUnknown as _;
                        ::agent::__private::Probe::<String>::BY_VALUE.is_some()
                    },
                > as ::agent::__private::OrStandIn<String>>::Field,
                String,
            >();
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::AdviceUnknown as _;
                ::agent::__private::advise(::agent::__private::Probe::<u8>::BY_VALUE)
            };
            const _: fn() = || ::agent::__private::argument::<
                <::agent::__private::ReplacedType<
                    {
                        #[allow(unused_imports)]
                        use ::agent::__private::AdviceUnknown as _;
                        ::agent::__private::Probe::<u8>::BY_VALUE.is_some()
                    },
                > as ::agent::__private::OrStandIn<u8>>::Field,
                u8,
            >();
            const _: fn() = || ::agent::__private::argument::<
                ::std::vec::Vec<String>,
                String,
            >();
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::AdviceUnknown as _;
                ::agent::__private::advise(
                    ::agent::__private::Probe::<Database>::BY_REFERENCE,
                )
            };
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::AdviceUnknown as _;
                ::agent::__private::advise(
                    ::agent::__private::Probe::<ToolContext>::BY_REFERENCE,
                )
            };
            fn __options() -> ::agent::__private::ToolOptions {
                #[allow(unused_imports)]
                use ::agent::__private::Into as _;
                ::agent::__private::ToolOptions::new("temperature")
                    .description("How warm it is.")
                    .read_only(true)
                    .timeout(::agent::__private::Duration::from_millis(10000u64))
                    .output_schema({
                        #[allow(unused_imports)]
                        use ::agent::__private::{
                            OutputOfValue as _, OutputUnknown as _, OutputWithSchema as _,
                        };
                        (&::agent::__private::ResultOf::<Result<Reading, Missing>>::NEW
                            .value())
                            .schema()
                    })
            }
            {
                #[allow(unused_imports)]
                use ::agent::__private::{From as _, Into as _, Some};
                #[derive(
                    ::agent::__private::serde::Deserialize,
                    ::agent::__private::schemars::JsonSchema
                )]
                #[serde(crate = "::agent::__private::serde")]
                #[schemars(crate = "::agent::__private::schemars")]
                struct __Args {
                    #[schemars(description = "City name.")]
                    city: <__OwnType0 as ::agent::__private::OrStandIn<String>>::Field,
                    #[serde(default = "__default0")]
                    #[schemars(transform = __show0)]
                    #[schemars(extend("minimum" = 0u64, "maximum" = 3u64))]
                    decimals: <__OwnType1 as ::agent::__private::OrStandIn<u8>>::Field,
                    words: <__OwnType2 as ::agent::__private::OrStandIn<
                        ::std::vec::Vec<String>,
                    >>::Field,
                }
                fn __run<'__a>(
                    p0: <__OwnType0 as ::agent::__private::OrStandIn<String>>::Field,
                    p1: <__OwnType1 as ::agent::__private::OrStandIn<u8>>::Field,
                    p2: <__OwnType2 as ::agent::__private::OrStandIn<
                        ::std::vec::Vec<String>,
                    >>::Field,
                    cx: &'__a ::agent::__private::ToolContext,
                ) -> ::agent::__private::BoxFuture<
                    '__a,
                    ::agent::__private::ToolOutcome,
                > {
                    #[allow(unused_imports)]
                    use ::agent::__private::InjectState as _;
                    {
                        let body = async move {
                            let _ = cx;
                            let p0 = <__OwnType0 as ::agent::__private::OrStandIn<
                                String,
                            >>::give(p0);
                            let p1 = <__OwnType1 as ::agent::__private::OrStandIn<
                                u8,
                            >>::give(p1);
                            let p2 = <__OwnType2 as ::agent::__private::OrStandIn<
                                ::std::vec::Vec<String>,
                            >>::give(p2);
                            let injected3 = match ::agent::__private::Inject::<
                                Database,
                            >::get(cx) {
                                ::agent::__private::Result::Ok(state) => state,
                                ::agent::__private::Result::Err(state) => return *state,
                            };
                            let injected4 = match ::agent::__private::Inject::<
                                ToolContext,
                            >::get(cx) {
                                ::agent::__private::Result::Ok(state) => state,
                                ::agent::__private::Result::Err(state) => return *state,
                            };
                            {
                                #[allow(unused_imports)]
                                use ::agent::__private::{
                                    ErrorUnknown as _, PlainValue as _, ErrorWithSource as _,
                                    ValueUnknown as _,
                                };
                                match ::agent::__private::Returned(
                                        temperature(p0, p1, &p2, injected3, injected4).await,
                                    )
                                    .peel()
                                {
                                    ::agent::__private::Result::Ok(value) => {
                                        let kind = (&::agent::__private::OfValue(&value)).kind();
                                        kind.outcome(value)
                                    }
                                    ::agent::__private::Result::Err(error) => {
                                        let kind = (&::agent::__private::OfError(&error)).kind();
                                        kind.outcome(error)
                                    }
                                }
                            }
                        };
                        ::agent::__private::Box::pin(::agent::__private::sendable(body))
                    }
                }
                static __DEFINITION: ::agent::__private::LazyLock<
                    ::agent::__private::Compiled,
                > = ::agent::__private::LazyLock::new(|| {
                    __options().compile::<__Args>()
                });
                let requires = {
                    #[allow(unused_imports)]
                    use ::agent::__private::InjectState as _;
                    ::agent::__private::keys(
                        &[
                            ::agent::__private::Inject::<Database>::key(),
                            ::agent::__private::Inject::<ToolContext>::key(),
                        ],
                    )
                };
                ::agent::__private::typed::<
                    __Args,
                    _,
                >(
                    &__DEFINITION,
                    requires,
                    move |args: __Args, cx| {
                        let __Args { city: p0, decimals: p1, words: p2 } = args;
                        __run(p0, p1, p2, cx)
                    },
                )
            }
        }
    }
};
