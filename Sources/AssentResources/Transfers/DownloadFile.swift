import AssentAuthorization
import AssentCore
import Foundation

/// The file that a download becomes. Until all of it is there it has a name of its own beside the place where it is to
/// be, and only its owner may read it. What is not finished is removed, by the next download into the directory if the
/// process has ended before.
final class DownloadFile: Sendable {
    private let target: String
    private let temporary: String
    private let descriptor: Locked<Int32?>

    /// - Throws: ``ResourceError``: `cannotCreateFile`.
    init(at path: String, random: any RandomSource) throws(ResourceError) {
        let url = URL(fileURLWithPath: path)
        let directory = url.deletingLastPathComponent()
        UnfinishedDownload.removeLeft(in: directory.path)
        let made = try Self.made(in: directory, random: random)
        target = url.path
        temporary = made.path
        descriptor = Locked(made.file)
    }

    private static func made(
        in directory: URL, random: any RandomSource
    ) throws(ResourceError) -> (path: String, file: Int32) {
        for _ in 0..<3 {
            let path = directory.appendingPathComponent(UnfinishedDownload.name(random)).path
            let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard file >= 0 else { break }
            if UnfinishedDownload.isKept(file) { return (path, file) }
            close(file)
            unlink(path)
        }
        throw ResourceError(
            .url, .cannotCreateFile, "No file can be made for the download.",
            suggestion: "Choose a directory that exists and may be written to.")
    }

    deinit { discard() }

    /// Writes at the end.
    func write(_ bytes: [UInt8]) throws(ResourceError) {
        let isWritten = descriptor.withLock { file -> Bool in
            guard let file else { return false }
            return bytes.withUnsafeBytes { buffer in
                var rest = buffer[...]
                while !rest.isEmpty {
                    let count = Foundation.write(file, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { return false }
                    rest = rest.dropFirst(count)
                }
                return true
            }
        }
        guard isWritten else { throw Self.unwritable }
    }

    /// Drops what was written.
    func startOver() throws(ResourceError) {
        let isEmpty = descriptor.withLock { file -> Bool in
            guard let file else { return false }
            return ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0
        }
        guard isEmpty else { throw Self.unwritable }
    }

    /// Gives the file its name. A file that was there is replaced.
    func commit() throws(ResourceError) {
        let isNamed = descriptor.withLock { file -> Bool in
            guard let open = file, fsync(open) == 0 || errno == EINVAL, rename(temporary, target) == 0 else {
                return false
            }
            close(open)
            file = nil
            return true
        }
        guard isNamed else { throw Self.unwritable }
    }

    /// Removes it, unless it has its name.
    func discard() {
        descriptor.withLock { file in
            guard let open = file else { return }
            close(open)
            unlink(temporary)
            file = nil
        }
    }

    private static var unwritable: ResourceError {
        ResourceError(
            .url, .cannotWriteToFile, "The download cannot be written to its file.",
            suggestion: "Check the space on the disk, and that the place is not a directory.")
    }
}
