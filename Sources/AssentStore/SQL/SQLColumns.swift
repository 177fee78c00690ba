/// What the columns of a result are called, once for all its rows.
final class SQLColumns: Sendable {
    let names: [String]

    /// How long each name is, in bytes: by that nearly all are told apart, without a look at them.
    private let lengths: [UInt8]

    init(_ names: [String]) {
        self.names = names
        lengths = names.map { UInt8(clamping: $0.utf8.count) }
    }

    /// Where a column stands; `nil` if there is none of that name. Each request reads dozens of columns.
    func index(of name: String) -> Int? {
        let length = UInt8(clamping: name.utf8.count)
        return lengths.indices.first { lengths[$0] == length && names[$0] == name }
    }
}
