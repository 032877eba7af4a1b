fn set() -> ::agent::ToolSet {
    {
        #[allow(unused_mut)]
        let mut set = ::agent::__private::ToolSet::new();
        set.push(<temperature as ::agent::__private::StaticTool>::entry());
        set.push(<text::search as ::agent::__private::StaticTool>::entry());
        #[cfg(unix)] set.push(<AddNumbers as ::agent::__private::StaticTool>::entry());
        set.add(Files::new(root));
        {
            #[allow(unused_imports)]
            use ::agent::__private::{
                assert_distinct as __distinct, duplicate_message as __message,
                duplicate_message_len as __message_len,
            };
            #[allow(dead_code)]
            const __NAMES: &[&::agent::__private::str] = &[
                <temperature as ::agent::__private::StaticTool>::NAME,
                <text::search as ::agent::__private::StaticTool>::NAME,
                [
                    #[cfg(unix)]
                    <AddNumbers as ::agent::__private::StaticTool>::NAME,
                    "",
                ][0],
            ];
            const _: () = __distinct(
                __NAMES[0usize],
                __NAMES.split_at(0usize).0,
                &__message::<{ __message_len(__NAMES[0usize]) }>(__NAMES[0usize]),
            );
            const _: () = __distinct(
                __NAMES[1usize],
                __NAMES.split_at(1usize).0,
                &__message::<{ __message_len(__NAMES[1usize]) }>(__NAMES[1usize]),
            );
            #[cfg(unix)]
            const _: () = __distinct(
                __NAMES[2usize],
                __NAMES.split_at(2usize).0,
                &__message::<{ __message_len(__NAMES[2usize]) }>(__NAMES[2usize]),
            );
        }
        set
    }
}
