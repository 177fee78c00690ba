import AssentConfiguration
import AssentCore
import Foundation

/// A file that only the server's user may read.
enum PrivateFile {
    /// Reads a file of at most `limit` bytes.
    ///
    /// - Parameters:
    ///   - path: where it is.
    ///   - limit: how many bytes it may have.
    ///   - isNamed: whether the operator has named it. Then it may be a symbolic link, as certbot and Kubernetes
    ///     create; the server's own files never are, and a link in their place is somebody else's.
    /// - Returns: its content.
    /// - Throws: ``ConfigurationError`` when it is missing, no plain file, readable by others, or too large.
    static func read(_ path: String, limit: Int = 1 << 20, isNamed: Bool = false) throws -> [UInt8] {
        // Not to wait for somebody who writes, should it be a pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (isNamed ? 0 : O_NOFOLLOW))
        guard descriptor >= 0 else {
            let reason = errno == ELOOP && !isNamed ? "it is a link, and the server has made none" : obstacle(errno)
            throw ConfigurationError(file: path, line: nil, "cannot be read: \(reason)")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw ConfigurationError(file: path, line: nil, "must be a plain file")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw ConfigurationError(
                file: path, line: nil, "can be read by other users: run 'chmod 600 \(path)', and think who has seen it")
        }
        guard status.st_size <= limit else {
            throw ConfigurationError(file: path, line: nil, "is larger than \(limit) bytes")
        }
        return [UInt8](try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).readToEnd() ?? Data())
    }

    /// Reads a text that the operator has named, as ``read(_:limit:isNamed:)`` does.
    ///
    /// - Throws: ``ConfigurationError``, also for what some editors write: another encoding, or a byte order mark. With
    ///   either it would be another secret.
    static func text(_ path: String, limit: Int = 4096) throws -> String {
        let bytes = try read(path, limit: limit, isNamed: true)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(file: path, line: nil, "is not text in UTF-8: save it so")
        }
        guard !bytes.starts(with: [0xEF, 0xBB, 0xBF]) else {
            throw ConfigurationError(
                file: path, line: nil, "begins with a byte order mark, which nobody sees: save it without one")
        }
        return text
    }

    /// Makes a file that must not exist yet, and syncs it and its directory by `sync`: a key that a power failure takes
    /// away is never made again.
    static func create(
        _ path: String, _ bytes: [UInt8], sync: (Int32) throws -> Void = PrivateFile.sync
    ) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = errno == EEXIST ? "it is there already" : obstacle(errno)
            throw ConfigurationError(file: path, line: nil, "cannot be made: \(reason)")
        }
        do {
            defer { close(descriptor) }
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
            try handle.write(contentsOf: Data(bytes))
            try sync(descriptor)
            try syncDirectory(of: path, sync)
        } catch {
            unlink(path)
            throw ConfigurationError(file: path, line: nil, "cannot be written: \(error.localizedDescription)")
        }
    }

    /// Refuses a place where another user could put a file of their own, or a link, under the name that a program is
    /// given to write to: in a directory that they own or may write to, unless that is one like `/tmp`, where everybody
    /// keeps what is theirs.
    ///
    /// It does not look at the directories above: in containers and on shared volumes they are often open to all, or
    /// somebody else's, and a directory of one's own in them is the usual place.
    static func checkPlace(_ path: String) throws {
        let parent = (path as NSString).deletingLastPathComponent
        var status = stat()
        guard stat(parent.isEmpty ? "." : parent, &status) == 0 else {
            throw ConfigurationError(file: path, line: nil, "cannot be made: \(obstacle(errno))")
        }
        let isSticky = status.st_mode & 0o1000 != 0
        guard [geteuid(), 0].contains(status.st_uid), status.st_mode & 0o022 == 0 || isSticky else {
            throw ConfigurationError(
                file: path, line: nil,
                "cannot be made: other users own its directory or can write there, and could put a file of theirs in "
                    + "its place. Name a directory of your own")
        }
    }

    /// Syncs a file that another program has written, and gives its size.
    static func settle(_ path: String) throws -> Int {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw ConfigurationError(file: path, line: nil, "cannot be read: \(obstacle(errno))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw ConfigurationError(file: path, line: nil, "cannot be read: \(obstacle(errno))")
        }
        do {
            try sync(descriptor)
        } catch {
            throw ConfigurationError(file: path, line: nil, "cannot be written: \(error.localizedDescription)")
        }
        return Int(status.st_size)
    }

    /// Gives a file another name, also that of a file that is there, and syncs the directory.
    static func rename(_ path: String, to name: String) throws {
        guard Foundation.rename(path, name) == 0 else {
            throw ConfigurationError(file: name, line: nil, "cannot be made: \(obstacle(errno))")
        }
        do {
            try syncDirectory(of: name, sync)
        } catch {
            throw ConfigurationError(file: name, line: nil, "cannot be written: \(error.localizedDescription)")
        }
    }

    private static func syncDirectory(of path: String, _ sync: (Int32) throws -> Void) throws {
        // A name alone is in the working directory.
        let parent = (path as NSString).deletingLastPathComponent
        let directory = open(parent.isEmpty ? "." : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        defer { close(directory) }
        try sync(directory)
    }

    /// Waits until what was written is on the disk. Some file systems cannot do that for a directory.
    static func sync(_ descriptor: Int32) throws {
        guard fsync(descriptor) != 0, errno != EINVAL else { return }
        throw POSIXError(.init(rawValue: errno) ?? .EIO)
    }

    /// Why the system refuses a file, in its own words (`errno`), and what to do where the wrong user has asked: a file
    /// that root has made for a server is not one that the server's user can read.
    ///
    /// - Parameter number: the system's number of the error.
    /// - Returns: a text that goes on behind "cannot be read: " or "cannot be made: ".
    static func obstacle(_ number: Int32) -> String {
        let words = String(cString: strerror(number))
        guard number == EACCES || number == EPERM else { return words }
        return "\(words). Run this as the user of the server, and give that user the file and the way to it by 'chown'"
    }
}
