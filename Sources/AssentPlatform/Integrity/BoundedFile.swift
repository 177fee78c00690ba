#if os(Linux)
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What a small file of the system holds. Foundation is not used: a probe is asked before each call.
enum BoundedFile: Equatable {
    case absent
    case unreadable
    /// The file's bytes, or the first ones of a longer file.
    case bytes(ArraySlice<UInt8>, isCut: Bool)

    /// Reads at most `limit` bytes, with one read: the kernel gives a file of `/proc`, and a small one, in one piece.
    /// It does not wait, whatever stands at the path.
    init(_ path: String, upTo limit: Int) {
        // Mostly it is not there, and the kernel finds that out with less work than by trying to open it.
        var found = stat()
        guard stat(path, &found) == 0 else {
            self = errno == ENOENT ? .absent : .unreadable
            return
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            self = errno == ENOENT ? .absent : .unreadable
            return
        }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count >= 0 else {
            self = .unreadable
            return
        }
        self = .bytes(bytes.prefix(count), isCut: count == limit)
    }
}
#endif
