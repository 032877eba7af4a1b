impl<T> Files<T>
where
    T: Store,
{
    /// Wipes.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::unused_self,
        reason = "the signature is that of a tool"
    )]
    async fn wipe(&self) {
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
    impl<T> Files<T>
    where
        T: Store,
    {
        ///The tools of the set `admin`, for `tools![…]`.
        pub fn admin(
            self: &::agent::__private::Arc<Self>,
        ) -> ::agent::__private::ToolSet {
            let this = ::agent::__private::share(self);
            ::agent::__private::shared::<Files<T>>();
            let mut set = ::agent::__private::ToolSet::new();
            set.push({
                let this = ::agent::__private::share(&this);
                (move || -> ::agent::__private::Entry {
                    fn __options() -> ::agent::__private::ToolOptions {
                        #[allow(unused_imports)]
                        use ::agent::__private::Into as _;
                        ::agent::__private::ToolOptions::new("wipe")
                            .description("Wipes.")
                            .destructive(true)
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
                        struct __Args {}
                        fn __run<'__a, T>(
                            this: ::agent::__private::Arc<Files<T>>,
                            cx: &'__a ::agent::__private::ToolContext,
                        ) -> ::agent::__private::BoxFuture<
                            '__a,
                            ::agent::__private::ToolOutcome,
                        >
                        where
                            T: Store,
                        {
                            {
                                let body = async move {
                                    let _ = cx;
                                    {
                                        #[allow(unused_imports)]
                                        use ::agent::__private::{
                                            ErrorUnknown as _, PlainValue as _, ErrorWithSource as _,
                                            ValueUnknown as _,
                                        };
                                        match ::agent::__private::Returned(
                                                <Files<T>>::wipe(&this).await,
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
                                ::agent::__private::Box::pin(
                                    ::agent::__private::sendable(body),
                                )
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
                            ::agent::__private::keys(&[])
                        };
                        ::agent::__private::typed::<
                            __Args,
                            _,
                        >(
                            &__DEFINITION,
                            requires,
                            move |args: __Args, cx| {
                                let __Args {} = args;
                                __run(::agent::__private::share(&this), cx)
                            },
                        )
                    }
                })()
            });
            set
        }
    }
};
