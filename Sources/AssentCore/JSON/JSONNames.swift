/// The names of one object, to find those that occur more than once. Names are compared by their code points.
///
/// Few names are compared with each other, which takes less time than hashing them; many are hashed, so that an object
/// with any number of members takes time in proportion.
struct JSONNames {
    private var few: [String] = []
    private var many: Set<[UInt8]> = []

    private static let limit = 16

    /// Adds a name; whether it is new.
    mutating func insert(_ name: String) -> Bool {
        if many.isEmpty {
            if few.contains(where: { JSONObject.same($0, name) }) { return false }
            few.append(name)
            if few.count > Self.limit { many = Set(few.map { Array($0.utf8) }) }
            return true
        }
        return many.insert(Array(name.utf8)).inserted
    }
}
