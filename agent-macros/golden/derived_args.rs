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
        use ::agent::__private::SortUnknown as _;
        ::agent::__private::Probe::<String>::SORT.length()
    };
    fn __length1(schema: &mut ::agent::__private::schemars::Schema) {
        ::agent::__private::limit_length(
            schema,
            ::agent::__private::Option::Some(1u64),
            ::agent::__private::Option::Some(80u64),
        )
    }
    fn __default2() -> u32 {
        10
    }
    fn __show2(schema: &mut ::agent::__private::schemars::Schema) {
        #[allow(unused_imports)]
        use ::agent::__private::JsonUnknown as _;
        ::agent::__private::show_default(
            schema,
            ::agent::__private::DefaultValue(__default2()).json(),
        )
    }
    const _: () = {
        #[allow(unused_imports)]
        use ::agent::__private::SortUnknown as _;
        ::agent::__private::Probe::<u32>::SORT.range()
    };
    const _: () = {
        #[allow(unused_imports)]
        use ::agent::__private::SortUnknown as _;
        ::agent::__private::Probe::<u32>::SORT.end(1i128, "1")
    };
    const _: () = {
        #[allow(unused_imports)]
        use ::agent::__private::SortUnknown as _;
        ::agent::__private::Probe::<u32>::SORT.end(50i128, "50")
    };
    type __Sent6 = <::agent::__private::OwnType<
        {
            #[allow(unused_imports)]
            use ::agent::__private::ArgumentUnknown as _;
            ::agent::__private::Probe::<String>::ARGUMENT
        },
    > as ::agent::__private::OrStandIn<String>>::Field;
    const _: fn() = || ::agent::__private::argument::<String, String>();
    fn __with6<'de, __D: ::agent::__private::serde::Deserializer<'de>>(
        deserializer: __D,
    ) -> ::agent::__private::Result<Host, __D::Error> {
        ::agent::__private::read_with(
            deserializer,
            |
                sent: <::agent::__private::OwnType<
                    {
                        #[allow(unused_imports)]
                        use ::agent::__private::ArgumentUnknown as _;
                        ::agent::__private::Probe::<String>::ARGUMENT
                    },
                > as ::agent::__private::OrStandIn<String>>::Field|
            {
                let sent = <::agent::__private::OwnType<
                    {
                        #[allow(unused_imports)]
                        use ::agent::__private::ArgumentUnknown as _;
                        ::agent::__private::Probe::<String>::ARGUMENT
                    },
                > as ::agent::__private::OrStandIn<String>>::give(sent);
                host(sent)
            },
        )
    }
    type __Field0 = Order;
    const _: fn() = || ::agent::__private::field::<Order, Order>();
    type __Described0 = <::agent::__private::OwnType<
        {
            #[allow(unused_imports)]
            use ::agent::__private::SchemaUnknown as _;
            ::agent::__private::Probe::<Order>::DESCRIBED
        },
    > as ::agent::__private::OrStandIn<Order>>::Field;
    const _: () = {
        #[allow(unused_imports)]
        use ::agent::__private::{From as _, Into as _, Some};
        #[derive(
            ::agent::__private::serde::Deserialize,
            ::agent::__private::schemars::JsonSchema
        )]
        #[serde(rename_all = "camelCase")]
        #[schemars(description = "A search.")]
        #[serde(crate = "::agent::__private::serde")]
        #[schemars(crate = "::agent::__private::schemars")]
        #[schemars(extend("x-checked" = true))]
        #[serde(remote = "SearchArgs")]
        #[serde(
            bound(
                deserialize = "for<'__granted> __Field0: ::agent::__private::FieldType"
            )
        )]
        struct __Mirror {
            #[serde(alias = "q")]
            #[schemars(description = "What to look for.")]
            #[schemars(transform = __length1)]
            #[schemars(extend("x-aliases" = ["q"], "x-field" = "query"))]
            query: String,
            #[serde(default = "__default2")]
            #[schemars(transform = __show2)]
            #[schemars(extend("minimum" = 1u64, "maximum" = 50u64, "x-field" = "limit"))]
            limit: u32,
            #[serde(deserialize_with = "__with6")]
            #[schemars(with = "__Sent6")]
            #[schemars(extend("x-field" = "from"))]
            from: Host,
            #[schemars(extend("x-field" = "order"))]
            #[schemars(with = "__Described0")]
            order: Order,
        }
        #[automatically_derived]
        impl<'de> ::agent::__private::CheckedType<'de> for SearchArgs {
            fn read<__D>(
                deserializer: __D,
            ) -> ::agent::__private::Result<Self, __D::Error>
            where
                __D: ::agent::__private::serde::Deserializer<'de>,
            {
                #[allow(unused_imports)]
                use ::agent::__private::NotRead as _;
                <__Mirror>::deserialize(deserializer)
            }
            fn check(&self, findings: &mut ::agent::__private::FindingList) {
                {
                    let value = &self.query;
                    findings
                        .field(
                            &[::agent::__private::FindingStep::Name("query")],
                            value,
                            known,
                        );
                }
                let whole = self;
                findings.whole(whole, in_order);
            }
        }
        #[automatically_derived]
        impl<'de> ::agent::__private::serde::Deserialize<'de> for SearchArgs {
            fn deserialize<__D>(
                deserializer: __D,
            ) -> ::agent::__private::Result<Self, __D::Error>
            where
                __D: ::agent::__private::serde::Deserializer<'de>,
            {
                ::agent::__private::checked(deserializer)
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
        impl ::agent::__private::schemars::JsonSchema for SearchArgs {
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
        impl ::agent::__private::ToolArgs for SearchArgs {
            const OBJECT: ::agent::__private::bool = true;
        }
    };
};
