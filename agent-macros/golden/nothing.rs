/// Says pong.
#[allow(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "the signature is that of a tool"
)]
fn ping() {
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
struct ping {}
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
    impl renamed::sdk::__private::StaticTool for ping {
        const NAME: &'static renamed::sdk::__private::str = "ping";
        fn entry() -> renamed::sdk::__private::Entry {
            fn __options() -> renamed::sdk::__private::ToolOptions {
                #[allow(unused_imports)]
                use renamed::sdk::__private::Into as _;
                renamed::sdk::__private::ToolOptions::new("ping")
                    .description("Says pong.")
            }
            {
                #[allow(unused_imports)]
                use renamed::sdk::__private::{From as _, Into as _, Some};
                #[derive(
                    renamed::sdk::__private::serde::Deserialize,
                    renamed::sdk::__private::schemars::JsonSchema
                )]
                #[serde(crate = "renamed::sdk::__private::serde")]
                #[schemars(crate = "renamed::sdk::__private::schemars")]
                struct __Args {}
                fn __run<'__a>(
                    cx: &'__a renamed::sdk::__private::ToolContext,
                ) -> renamed::sdk::__private::BoxFuture<
                    '__a,
                    renamed::sdk::__private::ToolOutcome,
                > {
                    {
                        let body = async move {
                            let _ = cx;
                            {
                                #[allow(unused_imports)]
                                use renamed::sdk::__private::{
                                    ErrorUnknown as _, PlainValue as _, ErrorWithSource as _,
                                    ValueUnknown as _,
                                };
                                match renamed::sdk::__private::Returned(ping()).peel() {
                                    renamed::sdk::__private::Result::Ok(value) => {
                                        let kind = (&renamed::sdk::__private::OfValue(&value))
                                            .kind();
                                        kind.outcome(value)
                                    }
                                    renamed::sdk::__private::Result::Err(error) => {
                                        let kind = (&renamed::sdk::__private::OfError(&error))
                                            .kind();
                                        kind.outcome(error)
                                    }
                                }
                            }
                        };
                        renamed::sdk::__private::Box::pin(
                            renamed::sdk::__private::sendable(body),
                        )
                    }
                }
                static __DEFINITION: renamed::sdk::__private::LazyLock<
                    renamed::sdk::__private::Compiled,
                > = renamed::sdk::__private::LazyLock::new(|| {
                    __options().compile::<__Args>()
                });
                let requires = {
                    #[allow(unused_imports)]
                    use renamed::sdk::__private::InjectState as _;
                    renamed::sdk::__private::keys(&[])
                };
                renamed::sdk::__private::typed::<
                    __Args,
                    _,
                >(
                    &__DEFINITION,
                    requires,
                    move |args: __Args, cx| {
                        let __Args {} = args;
                        __run(cx)
                    },
                )
            }
        }
    }
};
