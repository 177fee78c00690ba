package import AssentCore

/// The file operations of one directory: a seam, so that a test can fail or crash after any of them.
///
/// Names are leaf names that the vault made itself. No operation follows a symbolic link.
package protocol VaultDirectory: Sendable {
    func list() throws -> [String]

    /// The file's content, or `nil` when there is none. Fails when it is longer than `limit`, not a regular file, or
    /// (when `isPrivate`) accessible to anyone but this user.
    func read(_ name: String, limit: Int, isPrivate: Bool) throws -> [UInt8]?

    /// A new empty file with mode 0600. Fails when there is one of that name.
    func create(_ name: String) throws -> Int32
    func write(_ bytes: [UInt8], to file: Int32) throws
    func sync(_ file: Int32) throws
    func close(_ file: Int32)

    func rename(_ source: String, to target: String) throws
    /// A second name for a file; `false` when that name is taken.
    func link(_ source: String, to target: String) throws -> Bool
    /// Nothing happens when there is no such file.
    func remove(_ name: String) throws
    func syncDirectory() throws

    /// Takes the exclusive lock on the byte at `offset` of the vault's lock file; `nil` when somebody else has it.
    func tryLock(at offset: Int64) throws -> (any FileLock)?
}

/// A lock between processes, until it is released or the process ends.
package protocol FileLock: Sendable {
    func release()
}

extension VaultDirectory {
    package func read(_ name: String, limit: Int) throws -> [UInt8]? {
        try read(name, limit: limit, isPrivate: false)
    }

    /// Writes a new file whose *content* is on the disk when this returns; its name is after `syncDirectory()`.
    package func writeDurably(_ bytes: [UInt8], to name: String) throws {
        let file = try create(name)
        defer { close(file) }
        try write(bytes, to: file)
        try sync(file)
    }
}

/// A file operation that failed.
package struct FileFailure: Error {
    package enum Reason {
        case diskFull
        case notPermitted
        case notAFile
        case notADirectory
        case isLink
        case tooLong
        case exposed
        case missing
        case other(Int32)
    }

    package let operation: String
    package let reason: Reason

    /// What happened and what to do.
    package var advice: String {
        switch reason {
        case .diskFull: "The disk is full (\(operation)). Free some space and try again."
        case .notPermitted: "\(operation) is not permitted. Check owner, mode and mount options of the directory."
        case .notAFile: "Something other than a file is in the way (\(operation)). Move it away."
        case .notADirectory: "Something other than a directory is in the way (\(operation)). Move it away."
        case .isLink: "A symbolic link is in the way (\(operation)). Put the file or directory itself there."
        case .tooLong: "A file is longer than it can be (\(operation)). Restore it from a backup."
        case .exposed:
            "Others have access to it or own it (\(operation)). Take it away from them: chown, chmod go=."
        case .missing: "It does not exist (\(operation))."
        case .other(let code): "\(operation) failed with system error \(code). Look it up and try again."
        }
    }

    package var asStoreError: SecretStoreError {
        switch reason {
        case .diskFull: SecretStoreError(.diskFull, advice)
        case .notPermitted, .exposed: SecretStoreError(.notPermitted, advice)
        default: SecretStoreError(.storageFailed, advice)
        }
    }
}
