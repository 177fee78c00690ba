import AssentCore
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Glibc
#endif

/// A directory of a real file system, held by descriptor so that it cannot be exchanged while the vault is open.
package final class PosixDirectory: VaultDirectory {
    package enum Privacy {
        case onlyThisUser
        case othersMustNotWrite
    }

    package static let lockFile = "vault.lock"

    private let descriptor: Int32
    private let lockFile: String

    /// Opens `path`. Missing directories are made with mode 0700 when `creating`.
    package init(_ path: String, creating: Bool, privacy: Privacy, lockFile: String = PosixDirectory.lockFile) throws {
        self.lockFile = lockFile
        // With a slash at its end, a symbolic link would be followed in spite of O_NOFOLLOW.
        let trimmed = path.replacing(/\/+$/, with: "")
        let path = trimmed.isEmpty ? (path.isEmpty ? "." : "/") : trimmed
        if creating { try Self.make(path) }
        descriptor = try Self.check("opening the directory") {
            open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        }
        var attributes = stat()
        let status = fstat(descriptor, &attributes)
        let forbidden: mode_t = privacy == .onlyThisUser ? 0o077 : 0o022
        guard status == 0, attributes.st_mode & forbidden == 0, [geteuid(), 0].contains(attributes.st_uid) else {
            // deinit closes the descriptor: every property has its value.
            throw FileFailure(operation: "opening the directory", reason: .exposed)
        }
    }

    /// Opens `path`, or returns `nil` when there is nothing of that name.
    static func existing(_ path: String, privacy: Privacy) throws -> PosixDirectory? {
        do {
            return try PosixDirectory(path, creating: false, privacy: privacy)
        } catch let failure as FileFailure {
            guard case .missing = failure.reason else { throw failure }
            return nil
        }
    }

    deinit { Self.closeQuietly(descriptor) }

    package func list() throws -> [String] {
        let copy = try Self.check("listing the directory") {
            openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard let stream = fdopendir(copy) else {
            let failure = Self.failure("listing the directory")
            Self.closeQuietly(copy)
            throw failure
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            // In its place: an entry is shorter than its type, and a copy would read behind the last one.
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    package func read(_ name: String, limit: Int, isPrivate: Bool) throws -> [UInt8]? {
        // Without O_NONBLOCK a FIFO put in the file's place would stop this thread.
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw Self.failure("reading \(name)")
        }
        defer { Self.closeQuietly(file) }
        var attributes = stat()
        _ = try Self.check("reading \(name)") { fstat(file, &attributes) }
        guard attributes.st_mode & S_IFMT == S_IFREG else {
            throw FileFailure(operation: "reading \(name)", reason: .notAFile)
        }
        guard !isPrivate || (attributes.st_mode & 0o077 == 0 && attributes.st_uid == geteuid()) else {
            throw FileFailure(operation: "reading \(name)", reason: .exposed)
        }
        guard attributes.st_size <= limit else {
            throw FileFailure(operation: "reading \(name)", reason: .tooLong)
        }
        return try content(of: file, size: Int(attributes.st_size), name: name)
    }

    private func content(of file: Int32, size: Int, name: String) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < size {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
                let length = Glue.read(file, rest)
                if length < 0, errno == EINTR { continue }
                if length < 0 { throw Self.failure("reading \(name)") }
                if length == 0 { break }
                count += length
            }
        }
    }

    package func create(_ name: String) throws -> Int32 {
        try Self.check("creating \(name)") {
            openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
    }

    package func write(_ bytes: [UInt8], to file: Int32) throws {
        try bytes.withUnsafeBytes { buffer in
            var rest = buffer[...]
            while !rest.isEmpty {
                let length = Glue.write(file, UnsafeRawBufferPointer(rebasing: rest))
                if length < 0, errno == EINTR { continue }
                guard length > 0 else { throw Self.failure("writing") }
                rest = rest.dropFirst(length)
            }
        }
    }

    package func sync(_ file: Int32) throws {
        #if canImport(Darwin)
        // fsync leaves the data in the drive's cache there.
        _ = try Self.check("writing") { fcntl(file, F_FULLFSYNC) }
        #else
        _ = try Self.check("writing") { fsync(file) }
        #endif
    }

    package func close(_ file: Int32) { Self.closeQuietly(file) }

    package func rename(_ source: String, to target: String) throws {
        _ = try Self.check("renaming to \(target)") { renameat(descriptor, source, descriptor, target) }
    }

    package func link(_ source: String, to target: String) throws -> Bool {
        if linkat(descriptor, source, descriptor, target, 0) == 0 { return true }
        if errno == EEXIST { return false }
        throw Self.failure("making \(target)")
    }

    package func remove(_ name: String) throws {
        if unlinkat(descriptor, name, 0) != 0, errno != ENOENT { throw Self.failure("removing \(name)") }
    }

    package func syncDirectory() throws {
        _ = try Self.check("writing the directory") { fsync(descriptor) }
    }

    package func tryLock(at offset: Int64) throws -> (any FileLock)? {
        let operation = "locking \(lockFile)"
        let file = try Self.check(operation) {
            openat(descriptor, lockFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
        }
        let lock = DescriptorLock(file)
        var attributes = stat()
        _ = try Self.check(operation) { fstat(file, &attributes) }
        guard attributes.st_mode & S_IFMT == S_IFREG else {
            lock.release()
            throw FileFailure(operation: operation, reason: .notAFile)
        }
        guard Glue.tryLock(file, offset) == 0 else {
            let failure = Self.failure(operation)
            let isTaken = [EAGAIN, EACCES].contains(errno)
            lock.release()
            if isTaken { return nil }
            throw failure
        }
        // A lock on a file that somebody removed meanwhile excludes nobody.
        var named = stat()
        guard fstatat(descriptor, lockFile, &named, AT_SYMLINK_NOFOLLOW) == 0, named.st_ino == attributes.st_ino
        else {
            lock.release()
            return nil
        }
        return lock
    }

    private static func make(_ path: String) throws {
        guard access(path, F_OK) != 0 else { return }
        let parent = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
        if parent != path { try make(parent) }
        if mkdir(path, 0o700) != 0 {
            guard errno == EEXIST else { throw failure("making the directory") }
            return
        }
        let directory = try check("making the directory") { open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        defer { closeQuietly(directory) }
        _ = try check("making the directory") { fsync(directory) }
    }

    private static func check(_ operation: String, _ call: () -> Int32) throws -> Int32 {
        while true {
            let result = call()
            if result >= 0 { return result }
            guard errno == EINTR else { throw failure(operation) }
        }
    }

    private static func failure(_ operation: String) -> FileFailure {
        let code = errno
        let reason: FileFailure.Reason =
            switch code {
            case ENOSPC, EDQUOT, EFBIG: .diskFull
            case EACCES, EPERM, EROFS: .notPermitted
            case EISDIR: .notAFile
            case ENOTDIR: .notADirectory
            case ELOOP: .isLink
            case ENOENT: .missing
            default: .other(code)
            }
        return FileFailure(operation: operation, reason: reason)
    }

    fileprivate static func closeQuietly(_ file: Int32) {
        #if canImport(Darwin)
        Darwin.close(file)
        #elseif canImport(Musl)
        Musl.close(file)
        #elseif canImport(Android)
        Android.close(file)
        #else
        Glibc.close(file)
        #endif
    }
}

/// An open-file-description lock: closing other descriptors of the file does not end it, the end of the process does.
private final class DescriptorLock: FileLock {
    private let file: Locked<Int32?>

    init(_ file: Int32) { self.file = Locked(file) }

    func release() {
        let open = file.withLock { file in
            defer { file = nil }
            return file
        }
        guard let open else { return }
        // Closing alone would leave the lock to a child process that was forked meanwhile, until it runs another
        // program.
        _ = Glue.setLock(open, F_UNLCK, 0, length: 0)
        PosixDirectory.closeQuietly(open)
    }
}

/// Calls whose C names a method of the directory hides.
private enum Glue {
    static func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        #if canImport(Darwin)
        Darwin.read(file, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
        Musl.read(file, buffer.baseAddress, buffer.count)
        #elseif canImport(Android)
        Android.read(file, buffer.baseAddress, buffer.count)
        #else
        Glibc.read(file, buffer.baseAddress, buffer.count)
        #endif
    }

    static func write(_ file: Int32, _ buffer: UnsafeRawBufferPointer) -> Int {
        #if canImport(Darwin)
        Darwin.write(file, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
        Musl.write(file, buffer.baseAddress, buffer.count)
        #elseif canImport(Android)
        Android.write(file, buffer.baseAddress, buffer.count)
        #else
        Glibc.write(file, buffer.baseAddress, buffer.count)
        #endif
    }

    static func tryLock(_ file: Int32, _ offset: Int64) -> Int32 { setLock(file, F_WRLCK, offset, length: 1) }

    /// `length` 0: to the end.
    static func setLock(_ file: Int32, _ type: Int32, _ offset: Int64, length: off_t) -> Int32 {
        #if canImport(Darwin)
        let setOpenFileDescriptionLock: Int32 = 90
        #else
        let setOpenFileDescriptionLock: Int32 = 37
        #endif
        var range = flock()
        range.l_type = Int16(type)
        range.l_whence = Int16(SEEK_SET)
        range.l_start = off_t(offset)
        range.l_len = length
        return fcntl(file, setOpenFileDescriptionLock, &range)
    }
}
