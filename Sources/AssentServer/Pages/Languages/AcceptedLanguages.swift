import HTTPTypes

/// The languages that a request asks for (RFC 9110 §12.5.4).
struct AcceptedLanguages {
    /// How many are looked at.
    private static let limit = 32

    /// The tags in lower case, the dearest first; `*` is any.
    let tags: [String]

    init(_ fields: HTTPFields) {
        var wishes: [(tag: String, quality: Double)] = []
        for item in (fields[.acceptLanguage] ?? "").split(separator: ",").prefix(Self.limit) {
            let parts = item.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            let quality = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            guard quality > 0, let tag = parts.first?.lowercased() else { continue }
            let place = wishes.firstIndex { $0.quality < quality } ?? wishes.endIndex
            wishes.insert((tag, quality), at: place)
        }
        tags = wishes.map(\.tag)
    }
}
