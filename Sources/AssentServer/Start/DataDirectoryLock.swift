import AssentConfiguration
import AssentCore
import Foundation

/// Keeps a data directory for one server: two on one SQLite file would be correct, but each would wait for the other,
/// and what one prints at its first start would not be what the other has stored.
///
/// The system lets go of it when the process ends, however it ends.
final class DataDirectoryLock: Sendable {
    private let descriptor: Locked<Int32?>

    /// Takes the lock in a directory.
    ///
    /// - Throws: ``ConfigurationError`` when another server has it, or when the file cannot be made.
    init(_ directory: DataDirectory) throws {
        let path = directory.file("serve.lock")
        let file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            // One that another user has made, for example root by a command, is there and cannot be opened.
            throw ConfigurationError(file: path, line: nil, "cannot be opened: \(PrivateFile.obstacle(errno))")
        }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            let reason = Self.refusal(errno, holder: Self.holder(file))
            close(file)
            throw ConfigurationError(file: path, line: nil, reason)
        }
        let text = Array("\(getpid())\n".utf8)
        // Only for the message above: the lock holds without it.
        _ = ftruncate(file, 0)
        _ = text.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        descriptor = Locked(file)
    }

    deinit { release() }

    /// Lets go of it.
    func release() {
        let file = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        guard let file else { return }
        // Closing alone would leave the lock to a child process that was forked meanwhile, until it runs another
        // program.
        _ = flock(file, LOCK_UN)
        close(file)
    }

    /// Why the lock failed, as the system says it (`errno`), and what to do. Some network file systems lack locks.
    static func refusal(_ number: Int32, holder: String) -> String {
        number == EWOULDBLOCK
            ? "another server\(holder) uses this data directory: stop it first, or give this one a directory of its own"
            : "cannot be locked: \(String(cString: strerror(number))). Put the data directory on a disk of this machine"
    }

    private static func holder(_ file: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = pread(file, &bytes, bytes.count, 0)
        guard count > 0, let process = Int(String(decoding: bytes.prefix(count).prefix { $0 != 10 }, as: UTF8.self))
        else { return "" }
        return " (process \(process))"
    }
}
