import AssentCore
import Foundation

/// The files of downloads that are not finished. Each download holds a lock on its own as long as it lives, and the
/// system lets go of that when the process ends, however it ends: what has no lock was left behind.
enum UnfinishedDownload {
    /// How many names of a directory are looked at.
    private static let limit = 10_000

    /// A name that no other file has.
    static func name(_ random: any RandomSource) -> String { ".\(random.uuid()).part" }

    private static func isName(_ name: String) -> Bool {
        name.utf8.count == 42 && name.hasPrefix(".") && name.hasSuffix(".part")
            && UUID(uuidString: String(name.dropFirst().dropLast(5))) != nil
    }

    /// Locks a file that was just made. Where the file system has no locks, nobody takes it for one that was left.
    ///
    /// - Returns: whether it is still there: somebody may have come before the lock.
    static func isKept(_ file: Int32) -> Bool {
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else { return errno != EAGAIN }
        var status = stat()
        return fstat(file, &status) == 0 && status.st_nlink > 0
    }

    /// Removes from a directory what downloads of this user have left behind. What cannot be looked at stays.
    static func removeLeft(in path: String) {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        guard let stream = fdopendir(directory) else {
            close(directory)
            return
        }
        defer { closedir(stream) }
        var looked = 0
        while looked < limit, let entry = readdir(stream) {
            looked += 1
            // In its place: an entry is shorter than its type, and a copy would read behind the last one.
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if isName(name) { removeIfLeft(name, in: directory) }
        }
    }

    private static func removeIfLeft(_ name: String, in directory: Int32) {
        // Without O_NONBLOCK a FIFO of that name would stop this thread.
        let file = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0,
            status.st_uid == geteuid(), flock(file, LOCK_EX | LOCK_NB) == 0
        else { return }
        unlinkat(directory, name, 0)
    }
}
