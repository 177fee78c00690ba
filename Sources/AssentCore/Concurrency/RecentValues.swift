/// A bounded memory of what was used lately, in two generations: what is used in one is carried into the next, and a
/// full one pushes the one before out.
///
/// Other modules compile what each request runs for their own types: as generic code it takes several times as long.
@usableFromInline
package struct RecentValues<Key: Hashable, Value> {
    @usableFromInline var young: [Key: Value] = [:]
    @usableFromInline var old: [Key: Value] = [:]
    @usableFromInline let limit: Int

    /// A memory each of whose two generations holds so many values.
    package init(generation limit: Int) { self.limit = limit }

    /// How many values are kept.
    package var count: Int { young.count + old.count }

    /// A value; it stays as if it had been kept now.
    @inlinable package mutating func find(_ key: Key) -> Value? {
        if let value = young[key] { return value }
        guard let value = old.removeValue(forKey: key) else { return nil }
        keep(value, for: key)
        return value
    }

    /// Keeps a value.
    @inlinable package mutating func keep(_ value: Value, for key: Key) {
        if young.count >= limit {
            old = young
            young = [:]
        }
        young[key] = value
    }

    /// Forgets a value.
    @inlinable package mutating func forget(_ key: Key) {
        young[key] = nil
        old[key] = nil
    }
}

extension RecentValues: Sendable where Key: Sendable, Value: Sendable {}
