/// Finds the names of one object that occur more than once. Names are compared by their code points.
///
/// Few members are compared with each other, in their place, which takes less time than hashing their names; many are
/// hashed, so that an object with any number of members takes time in proportion.
struct JSONNames {
    private var many: Set<[UInt8]> = []

    private static let limit = 16

    /// Whether a name is new behind the `members` that stand before it. Asked for each member, in their order.
    mutating func isNew(_ name: String, behind members: ArraySlice<JSONObject.Member>) -> Bool {
        guard members.count > Self.limit else { return !members.contains { JSONObject.same($0.name, name) } }
        if many.isEmpty { many = Set(members.map { Array($0.name.utf8) }) }
        return many.insert(Array(name.utf8)).inserted
    }
}
