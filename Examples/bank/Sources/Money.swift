/// An amount in hundredths of its currency's unit.
struct Money: Sendable, Hashable {
    let cents: Int64

    init(cents: Int64) { self.cents = cents }

    /// Reads `200`, `200.5` or `200.50`: digits, at most two after the point, nothing else, more than zero.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let whole = parts.first, (1...12).contains(whole.utf8.count),
            parts.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } })
        else { return nil }
        let fraction = parts.count == 2 ? parts[1] : "0"
        guard (1...2).contains(fraction.utf8.count), let units = Int64(whole),
            let hundredths = Int64(fraction.utf8.count == 1 ? fraction + "0" : fraction)
        else { return nil }
        cents = units * 100 + hundredths
        guard cents > 0 else { return nil }
    }

    var text: String {
        let hundredths = cents % 100
        return "\(cents / 100).\(hundredths < 10 ? "0" : "")\(hundredths)"
    }
}
