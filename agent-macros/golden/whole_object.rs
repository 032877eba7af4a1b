/// Searches.
#[allow(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "the signature is that of a tool"
)]
fn search(args: SearchArgs) -> Vec<Note> {
    body
}
///The type of the tool [`search`], for `tools![…]`.
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
struct SearchTool {}
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
    impl ::agent::__private::StaticTool for SearchTool {
        const NAME: &'static ::agent::__private::str = "search";
        fn entry() -> ::agent::__private::Entry {
            type __OwnType0 = ::agent::__private::OwnType<
                {
                    #[allow(unused_imports)]
                    use ::agent::__private::ArgumentUnknown as _;
                    ::agent::__private::Probe::<SearchArgs>::ARGUMENT
                },
            >;
            const _: () = {
                #[allow(unused_imports)]
                use ::agent::__private::AdviceUnknown as _;
                ::agent::__private::advise(
                    ::agent::__private::Probe::<SearchArgs>::BY_VALUE,
                )
            };
            const _: fn() = || ::agent::__private::argument::<
                <::agent::__private::ReplacedType<
                    {
                        #[allow(unused_imports)]
                        use ::agent::__private::AdviceUnknown as _;
                        ::agent::__private::Probe::<SearchArgs>::BY_VALUE.is_some()
                    },
                > as ::agent::__private::OrStandIn<SearchArgs>>::Field,
                SearchArgs,
            >();
            fn __approval(value: &SearchArgs) -> ::agent::__private::bool {
                (|limit: &u32| *limit > 9)(&value.limit)
            }
            fn __options() -> ::agent::__private::ToolOptions {
                #[allow(unused_imports)]
                use ::agent::__private::Into as _;
                ::agent::__private::ToolOptions::new("search")
                    .description("Searches.")
                    .output_schema({
                        #[allow(unused_imports)]
                        use ::agent::__private::{
                            OutputOfValue as _, OutputUnknown as _, OutputWithSchema as _,
                        };
                        (&::agent::__private::ResultOf::<Vec<Note>>::NEW.value())
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
                    args: <__OwnType0 as ::agent::__private::OrStandIn<
                        SearchArgs,
                    >>::Field,
                }
                fn __run<'__a>(
                    p0: <__OwnType0 as ::agent::__private::OrStandIn<SearchArgs>>::Field,
                    cx: &'__a ::agent::__private::ToolContext,
                ) -> ::agent::__private::BoxFuture<
                    '__a,
                    ::agent::__private::ToolOutcome,
                > {
                    ::agent::__private::blocking(
                        cx,
                        move |cx: &::agent::__private::ToolContext| {
                            let _ = cx;
                            let p0 = <__OwnType0 as ::agent::__private::OrStandIn<
                                SearchArgs,
                            >>::give(p0);
                            {
                                #[allow(unused_imports)]
                                use ::agent::__private::{
                                    ErrorUnknown as _, PlainValue as _, ErrorWithSource as _,
                                    ValueUnknown as _,
                                };
                                match ::agent::__private::Returned(search(p0)).peel() {
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
                        },
                    )
                }
                const __WHOLE: ::agent::__private::bool = {
                    #[allow(unused_imports)]
                    use ::agent::__private::ObjectUnknown as _;
                    ::agent::__private::Probe::<SearchArgs>::OBJECT
                };
                static __DEFINITION: ::agent::__private::LazyLock<
                    ::agent::__private::Compiled,
                > = ::agent::__private::LazyLock::new(|| {
                    if __WHOLE {
                        __options()
                            .approval(
                                ::agent::__private::Approval::when::<
                                    <__OwnType0 as ::agent::__private::OrStandIn<
                                        SearchArgs,
                                    >>::Field,
                                >(|args| __approval(
                                    <__OwnType0 as ::agent::__private::OrStandIn<
                                        SearchArgs,
                                    >>::lend(args),
                                )),
                            )
                            .compile::<
                                <__OwnType0 as ::agent::__private::OrStandIn<
                                    SearchArgs,
                                >>::Field,
                            >()
                    } else {
                        __options()
                            .approval(
                                ::agent::__private::Approval::when::<
                                    __Args,
                                >(|args| __approval(
                                    <__OwnType0 as ::agent::__private::OrStandIn<
                                        SearchArgs,
                                    >>::lend(&args.args),
                                )),
                            )
                            .compile::<__Args>()
                    }
                });
                let requires = {
                    #[allow(unused_imports)]
                    use ::agent::__private::InjectState as _;
                    ::agent::__private::keys(&[])
                };
                if __WHOLE {
                    return ::agent::__private::typed::<
                        <__OwnType0 as ::agent::__private::OrStandIn<SearchArgs>>::Field,
                        _,
                    >(&__DEFINITION, requires, move |args, cx| __run(args, cx));
                }
                ::agent::__private::typed::<
                    __Args,
                    _,
                >(
                    &__DEFINITION,
                    requires,
                    move |args: __Args, cx| {
                        let __Args { args: p0 } = args;
                        __run(p0, cx)
                    },
                )
            }
        }
    }
};
