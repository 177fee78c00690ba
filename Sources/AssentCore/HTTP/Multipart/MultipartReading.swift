/// One reading of a form's content: small parts are gathered into chunks, large ones and streams are passed on as they
/// come.
final class MultipartReading: Sendable {
    private let layout: MultipartLayout
    private let place = Locked(Place())

    /// How many bytes are gathered before a chunk goes out.
    private static let chunk = 64 << 10

    init(_ layout: MultipartLayout) { self.layout = layout }

    private struct Place {
        var index = 0
        var part: PartReading?
        var isAtEnd = false
    }

    /// The part that is being passed on.
    private struct PartReading {
        let pull: @Sendable () async throws -> [UInt8]?
        let isSearched: Bool
        var rest: Int?
        var tail: [UInt8] = []
    }

    func next() async throws -> [UInt8]? {
        var place = self.place.withLock { $0 }
        var bytes: [UInt8] = []
        gathering: while bytes.count < Self.chunk {
            if place.part != nil {
                // What is gathered goes first, so that a large chunk is not copied behind it.
                guard bytes.isEmpty else { break gathering }
                guard let more = try await read(&place) else {
                    place.part = nil
                    place.index += 1
                    bytes += MultipartLayout.lineBreak
                    continue
                }
                bytes = more
                break gathering
            }
            guard place.index < layout.entries.count else {
                if !place.isAtEnd { bytes += layout.end }
                place.isAtEnd = true
                break
            }
            begin(layout.entries[place.index], &place, &bytes)
        }
        let reached = place
        self.place.withLock { $0 = reached }
        return bytes.isEmpty ? nil : bytes
    }

    private func begin(_ entry: MultipartEntry, _ place: inout Place, _ bytes: inout [UInt8]) {
        if bytes.isEmpty { bytes.reserveCapacity(Self.chunk * 2) }
        bytes += layout.delimiter
        bytes += entry.head
        if let content = entry.content.inMemory, content.count < Self.chunk {
            bytes += content
            bytes += MultipartLayout.lineBreak
            place.index += 1
        } else {
            place.part = PartReading(
                pull: entry.content.reading(), isSearched: entry.content.inMemory != nil, rest: entry.content.length)
        }
    }

    /// The next bytes of a part; empty chunks are left out, since they would be taken for the end of the content.
    private func read(_ place: inout Place) async throws -> [UInt8]? {
        guard var part = place.part else { return nil }
        while let more = try await part.pull() {
            guard !more.isEmpty else { continue }
            if let rest = part.rest {
                guard more.count <= rest else { throw Self.wrongLength }
                part.rest = rest - more.count
            }
            if !part.isSearched, layout.search.finds(in: more, after: &part.tail) {
                throw WireError(.refused, "a part of a form has the form's boundary")
            }
            place.part = part
            return more
        }
        guard part.rest ?? 0 == 0 else { throw Self.wrongLength }
        return nil
    }

    private static let wrongLength = HTTPTransportError(
        .bodyFailed, "A part of a form has another length than it said.")
}
