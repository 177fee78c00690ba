/// How many handshakes of payload encryption a node answers: 20 at once and 2 a second for an address, 200 a second for
/// all. A place is used up by a handshake and comes back with time.
struct HandshakeLimits: Sendable {
    static let burst = 20.0
    static let rate = 2.0
    static let total = 200.0

    /// How many addresses are remembered before those are forgotten that have all their places again.
    private static let tableSize = 8192

    /// Places that fill up with time.
    private struct Places: Sendable {
        var left: Double
        var at: Int64

        mutating func fill(_ rate: Double, upTo limit: Double, now: Int64) {
            // A clock that was set back gives nothing and takes nothing.
            left = min(limit, left + rate * Double(max(0, now - at)) / 1000)
            at = now
        }
    }

    private var all = Places(left: total, at: 0)
    private var addresses: [String: Places] = [:]

    /// Takes a place at a time, in milliseconds since 1970. A caller without an address takes one of all places alone.
    mutating func take(_ address: String?, now: Int64) -> Bool {
        all.fill(Self.total, upTo: Self.total, now: now)
        guard all.left >= 1 else { return false }
        if let address {
            var own = addresses[address] ?? Places(left: Self.burst, at: now)
            own.fill(Self.rate, upTo: Self.burst, now: now)
            guard own.left >= 1 else { return false }
            own.left -= 1
            if addresses.count >= Self.tableSize { forget(now: now) }
            addresses[address] = own
        }
        all.left -= 1
        return true
    }

    private mutating func forget(now: Int64) {
        addresses = addresses.filter { _, places in
            var places = places
            places.fill(Self.rate, upTo: Self.burst, now: now)
            return places.left < Self.burst
        }
    }
}
