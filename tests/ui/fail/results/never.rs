use agent::tool;

/// Waits for ever.
#[tool]
async fn wait() -> ! {
    std::future::pending().await
}

fn main() {}
