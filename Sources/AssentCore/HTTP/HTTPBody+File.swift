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
        var file: Int32?
        var rest: Int
    }

    private static let piece = 64 << 10

    init(path: String, size: Int) {
        self.path = path
        state = Locked(State(file: nil, rest: size))
    }

    deinit {
        if let file = state.withLock({ $0.file }) { close(file) }
    }

    func next() throws -> [UInt8]? {
        try state.withLock { state in
            guard state.rest > 0 else {
                if let file = state.file { close(file) }
                state.file = nil
                return nil
            }
            let file = try state.file ?? opened()
            state.file = file
            let bytes = Self.read(min(state.rest, Self.piece), of: file)
            guard !bytes.isEmpty else {
                throw HTTPTransportError(.bodyFailed, "A file is shorter than it was when the request was made.")
            }
            state.rest -= bytes.count
            return bytes
        }
    }

    private func opened() throws(HTTPTransportError) -> Int32 {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw HTTPBody.unreadable }
        return file
    }

    /// The next bytes; none at the end, or when they cannot be read. They are read to where they are sent from: what
    /// a `FileHandle` reads would be copied there.
    private static func read(_ count: Int, of file: Int32) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            while true {
                let found = Foundation.read(file, buffer.baseAddress, count)
                if found < 0, errno == EINTR { continue }
                length = max(0, found)
                return
            }
        }
    }
}
