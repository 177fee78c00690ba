/// A form with files as a request's content (`multipart/form-data`, RFC 7578).
public struct MultipartForm: Sendable {
    /// What stands between the parts, and in none of them.
    public let boundary: String

    /// The content. Parts that are streams are read as it is read, so nothing of them is kept.
    public let body: HTTPBody

    /// The value of the field `Content-Type`.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// A form of these fields and parts, in their order.
    ///
    /// Parts in memory are searched for the boundary now, streams as they are read: reading the content then ends with
    /// a ``WireError`` before the boundary is passed on.
    ///
    /// - Parameters:
    ///   - fields: the plain fields.
    ///   - parts: what stands behind them.
    ///   - random: where the boundary comes from.
    /// - Throws: ``WireError``: `malformed` for a name or a media type that cannot stand in a header; `refused` when no
    ///   boundary was found that the parts do not have.
    public init(
        fields: FormItems = FormItems(), parts: [MultipartPart], random: any RandomSource = SystemRandom()
    ) throws(WireError) {
        var entries: [MultipartEntry] = []
        entries.reserveCapacity(fields.items.count + parts.count)
        for field in fields.items {
            entries.append(try MultipartEntry(MultipartPart(name: field.name, data: Array(field.value.utf8))))
        }
        for part in parts { entries.append(try MultipartEntry(part)) }
        let search = try Self.search(missing: entries, random)
        boundary = String(decoding: search.boundary, as: UTF8.self)
        body = MultipartLayout(entries: entries, search: search).body
    }

    private static func search(
        missing entries: [MultipartEntry], _ random: any RandomSource
    ) throws(WireError) -> BoundarySearch {
        for _ in 0..<tries {
            let search = BoundarySearch(Array(random.token().utf8))
            if !entries.contains(where: { $0.has(search) }) { return search }
        }
        throw WireError(.refused, "the parts of a form have each boundary that was tried")
    }

    private static let tries = 8
}

/// A part whose header is written.
struct MultipartEntry: Sendable {
    let head: [UInt8]
    let content: HTTPBody

    init(_ part: MultipartPart) throws(WireError) {
        head = try part.head()
        content = part.content
    }

    func has(_ search: BoundarySearch) -> Bool {
        search.finds(in: head) || content.inMemory.map(search.finds(in:)) == true
    }
}

/// What a form's content is made of.
struct MultipartLayout: Sendable {
    let entries: [MultipartEntry]
    let delimiter: [UInt8]
    let end: [UInt8]
    let search: BoundarySearch

    init(entries: [MultipartEntry], search: BoundarySearch) {
        self.entries = entries
        self.search = search
        let dashes = Array("--".utf8)
        delimiter = dashes + search.boundary + Self.lineBreak
        end = dashes + search.boundary + dashes + Self.lineBreak
    }

    static let lineBreak = Array("\r\n".utf8)

    var body: HTTPBody {
        HTTPBody(length: length, isReplayable: entries.allSatisfy(\.content.isReplayable)) {
            let reading = MultipartReading(self)
            return { try await reading.next() }
        }
    }

    private var length: Int? {
        var sum = end.count
        for entry in entries {
            guard let content = entry.content.length else { return nil }
            sum += delimiter.count + entry.head.count + content + Self.lineBreak.count
        }
        return sum
    }
}
