use super::nanos;
use crate::message::Usage;
use crate::provider::all_prices;

/// Prices have few digits, so that the exact cost is an integer in units of 10^-15 dollars.
#[test]
fn billionths_are_what_the_prices_say_rounded_up() {
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a price is a small number")]
    let exact = |tokens: u64, dollars: f64| u128::from(tokens) * (dollars * 1e9).round() as u128;
    let mut rows = 0;
    for (name, prices) in all_prices() {
        rows += 1;
        let (mut counted, mut wanted) = (0_u128, 0_u128);
        for _ in 0..1_000 {
            // The input stays below the sizes from which models charge higher prices.
            let mut usage = Usage::new(50_000 + below(50_000), below(30_000));
            (usage.cache_read, usage.cache_write) = (below(25_000), below(25_000));
            let plain = usage.input - usage.cache_read - usage.cache_write;
            let sum = exact(plain, prices.input)
                + exact(usage.output, prices.output)
                + exact(usage.cache_read, prices.cache_read)
                + exact(usage.cache_write, prices.cache_write);
            let (cost, least) = (nanos(prices.cost(&usage).total), sum.div_ceil(1_000_000));
            assert!((least..=least + 1).contains(&cost.into()), "{name}: {cost} for {least}, {usage:?}");
            (counted, wanted) = (counted + u128::from(cost), wanted + least);
        }
        assert!(counted - wanted <= 1_000, "{name}: {counted} for {wanted}");
    }
    assert!(rows > 50, "{rows} rows");
    assert_eq!((nanos(0.0), nanos(1e-10), nanos(-1.0), nanos(f64::NAN)), (0, 1, 0, 0));
}
