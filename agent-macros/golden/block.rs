impl Files {
    fn new() -> Self {
        body
    }
    /// Reads.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::unused_self,
        reason = "the signature is that of a tool"
    )]
    fn read(&self, path: &str) -> Result<String, Error> {
        body
    }
}
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
    impl ::agent::__private::further_tool_blocks_say_set_and_a_name for Files {
        fn shared_tools(
            this: ::agent::__private::Arc<Self>,
        ) -> ::agent::__private::ToolSet {
            ::agent::__private::shared::<Files>();
            let mut set = ::agent::__private::ToolSet::new();
            set.push({
                let this = ::agent::__private::share(&this);
                (move || -> ::agent::__private::Entry {
                    type __OwnType0 = ::agent::__private::OwnType<
                        {
                            #[allow(unused_imports)]
                            use ::agent::__private::ArgumentUnknown as _;
                            ::agent::__private::Probe::<::std::string::String>::ARGUMENT
                        },
                    >;
                    const _: fn() = || ::agent::__private::argument::<
                        ::std::string::String,
                        ::std::string::String,
                    >();
                    fn __options() -> ::agent::__private::ToolOptions {
                        #[allow(unused_imports)]
                        use ::agent::__private::Into as _;
                        ::agent::__private::ToolOptions::new("read")
                            .description("Reads.")
                            .read_only(true)
                            .output_schema({
                                #[allow(unused_imports)]
                                use ::agent::__private::{
                                    OutputOfValue as _, OutputUnknown as _,
                                    OutputWithSchema as _,
                                };
                                (&::agent::__private::ResultOf::<Result<String, Error>>::NEW
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
                            #[schemars(description = "Where.")]
                            path: <__OwnType0 as ::agent::__private::OrStandIn<
                                ::std::string::String,
                            >>::Field,
                        }
                        fn __run<'__a>(
                            this: ::agent::__private::Arc<Files>,
                            p0: <__OwnType0 as ::agent::__private::OrStandIn<
                                ::std::string::String,
                            >>::Field,
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
                                        ::std::string::String,
                                    >>::give(p0);
                                    {
                                        #[allow(unused_imports)]
                                        use ::agent::__private::{
                                            ErrorUnknown as _, PlainValue as _, ErrorWithSource as _,
                                            ValueUnknown as _,
                                        };
                                        match ::agent::__private::Returned(
                                                <Files>::read(&this, &p0),
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
                                },
                            )
                        }
                        static __DEFINITION: ::agent::__private::LazyLock<
                            ::agent::__private::Compiled,
                        > = ::agent::__private::LazyLock::new(|| {
                            __options().compile::<__Args>()
                        });
                        let requires = {
                            #[allow(unused_imports)]
                            use ::agent::__private::InjectState as _;
                            ::agent::__private::keys(&[])
                        };
                        ::agent::__private::typed::<
                            __Args,
                            _,
                        >(
                            &__DEFINITION,
                            requires,
                            move |args: __Args, cx| {
                                let __Args { path: p0 } = args;
                                __run(::agent::__private::share(&this), p0, cx)
                            },
                        )
                    }
                })()
            });
            set
        }
    }
    #[automatically_derived]
    impl ::agent::__private::IntoTools for Files {
        fn into_tools(self) -> ::agent::__private::ToolSet {
            <Self as ::agent::__private::further_tool_blocks_say_set_and_a_name>::shared_tools(
                ::agent::__private::Arc::new(self),
            )
        }
    }
};
