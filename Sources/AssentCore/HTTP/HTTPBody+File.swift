import Foundation

extension HTTPBody {
    /// A file's content. Each reading opens the file and reads it piece by piece, so nothing of it is kept.
    ///
    /// - Parameter path: where the file is.
    /// - Throws: ``HTTPTransportError`` with code `bodyFailed` when it is not a file that can be read. Reading throws
    ///   the same when the file is shorter by then; what was added to it is not read.
    public init(file path: String) throws(HTTPTransportError) {
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        guard facts?[.type] as? FileAttributeType == .typeRegular, let handle = FileHandle(forReadingAtPath: path),
            let end = try? handle.seekToEnd(), let size = Int(exactly: end)
        else { throw Self.unreadable }
        self.init(length: size, isReplayable: true) {
            let reading = FileReading(path: path, size: size)
            return { try reading.next() }
        }
    }

    fileprivate static let unreadable = HTTPTransportError(
        .bodyFailed, "A file cannot be read.", suggestion: "Check that the file exists and may be read.")
}

/// One reading of a file.
private final class FileReading: Sendable {
    private let path: String
    private let state: Locked<State>

    private struct State {
        var handle: FileHandle?
        var rest: Int
    }

    init(path: String, size: Int) {
        self.path = path
        state = Locked(State(handle: nil, rest: size))
    }

    func next() throws -> [UInt8]? {
        try state.withLock { state in
            guard state.rest > 0 else {
                state.handle = nil
                return nil
            }
            guard let handle = state.handle ?? FileHandle(forReadingAtPath: path) else { throw HTTPBody.unreadable }
            state.handle = handle
            guard let data = try? handle.read(upToCount: min(state.rest, 64 << 10)), !data.isEmpty else {
                throw HTTPTransportError(.bodyFailed, "A file is shorter than it was when the request was made.")
            }
            state.rest -= data.count
            return [UInt8](data)
        }
    }
}
