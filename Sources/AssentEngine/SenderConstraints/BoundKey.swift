import AssentCore

/// What belongs to a key, as codes and the grants of public clients do (RFC 9449 §5, §10).
enum BoundKey {
    /// Whether someone who has proved the key `proved`, or none, may use what belongs to `bound`. What belongs to no
    /// key yet takes any.
    static func allows(_ proved: String?, where bound: String?) -> Bool {
        guard let bound else { return true }
        return proved.map { isProved($0, of: bound) } ?? false
    }

    /// Whether `proved` is the key that something belongs to; nothing else is, where it belongs to none.
    static func isProved(_ proved: String, of bound: String?) -> Bool {
        bound.map { ConstantTime.equal($0, proved) } ?? false
    }
}
