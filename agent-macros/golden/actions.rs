#[derive(::agent::__private::ToolArgs)]
/// Looks after notes.
#[serde(tag = "action")]
#[serde(rename_all = "snake_case")]
enum Notes {
    /// Adds one.
    Add { text: String },
    Clear,
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
    impl ::agent::__private::StaticTool for Notes {
        const NAME: &'static ::agent::__private::str = "notes";
        fn entry() -> ::agent::__private::Entry {
            const _: fn() = || ::agent::__private::runs::<Notes>();
            fn __options() -> ::agent::__private::ToolOptions {
                #[allow(unused_imports)]
                use ::agent::__private::Into as _;
                ::agent::__private::ToolOptions::new("notes")
                    .description("Looks after notes.")
                    .output_schema({
                        #[allow(unused_imports)]
                        use ::agent::__private::{
                            OutputOfValue as _, OutputUnknown as _, OutputWithSchema as _,
                        };
                        (&::agent::__private::ResultOf::<
                            <::agent::__private::OwnType<
                                {
                                    #[allow(unused_imports)]
                                    use ::agent::__private::RunUnknown as _;
                                    ::agent::__private::Probe::<Notes>::RUNS
                                },
                            > as ::agent::__private::OrIdle<Notes>>::Output,
                        >::NEW
                            .value())
                            .schema()
                    })
            }
            static __DEFINITION: ::agent::__private::LazyLock<
                ::agent::__private::Compiled,
            > = ::agent::__private::LazyLock::new(|| {
                __options().compile_type::<Notes>()
            });
            ::agent::__private::typed::<
                Notes,
                _,
            >(
                &__DEFINITION,
                ::agent::__private::keys(&[::agent::__private::Option::None]),
                |args, cx| {
                    ::agent::__private::Box::pin(async move {
                        {
                            #[allow(unused_imports)]
                            use ::agent::__private::{
                                ErrorUnknown as _, PlainValue as _, ErrorWithSource as _,
                                ValueUnknown as _,
                            };
                            match ::agent::__private::Returned(
                                    <::agent::__private::OwnType<
                                        {
                                            #[allow(unused_imports)]
                                            use ::agent::__private::RunUnknown as _;
                                            ::agent::__private::Probe::<Notes>::RUNS
                                        },
                                    > as ::agent::__private::OrIdle<Notes>>::run(args, cx)
                                        .await,
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
                    })
                },
            )
        }
    }
};
