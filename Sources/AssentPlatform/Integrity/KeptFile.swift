#if os(Linux)
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that a probe looks at before each call, and that stays open between two looks: finding and opening it each
/// time is much of what a look costs.
///
/// Its number may come to stand for another file: code that closes numbers which are not its own closes this one, too,
/// and the next file that is opened gets it. So a probe must be able to tell whether it has looked at the right file,
/// and must find that anew if it has not.
final class KeptFile: Sendable {
    /// Which file of this machine it is.
    private struct Identity: Equatable, Sendable {
        let device: UInt64
        let number: UInt64

        init(_ found: stat) {
            device = UInt64(found.st_dev)
            number = UInt64(found.st_ino)
        }
    }

    private let descriptor: Int32
    private let identity: Identity

    /// Opens a file; `nil` when it cannot be read. It does not wait, whatever stands at the path.
    init?(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        guard let found = Self.look(at: descriptor) else {
            _ = close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        identity = Identity(found)
    }

    deinit {
        // Another file that has got the number is not ours to close.
        if mode != nil { _ = close(descriptor) }
    }

    /// What kind of file it is, and who may do what with it, as that is now; `nil` when the number stands for another
    /// file.
    var mode: mode_t? {
        guard let found = Self.look(at: descriptor), Identity(found) == identity else { return nil }
        return found.st_mode
    }

    /// Reads the first bytes, with one read: the kernel gives a file of `/proc`, and a small one, in one piece.
    ///
    /// - Parameters:
    ///   - limit: how many bytes at most.
    ///   - body: gets the bytes, which are there during the call only.
    /// - Returns: what `body` returns; `nil` when the file cannot be read.
    func reading<Found>(upTo limit: Int, _ body: (UnsafeRawBufferPointer) -> Found?) -> Found? {
        withUnsafeTemporaryAllocation(byteCount: limit, alignment: 1) { buffer -> Found? in
            let count = pread(descriptor, buffer.baseAddress, buffer.count, 0)
            guard count >= 0 else { return nil }
            return body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    private static func look(at descriptor: Int32) -> stat? {
        var found = stat()
        return fstat(descriptor, &found) == 0 ? found : nil
    }
}
#endif
