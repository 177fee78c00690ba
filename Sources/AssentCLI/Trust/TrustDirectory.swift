import AssentCore
import AssentTrust
import Foundation

/// A directory with the versions of a trust file, each under its number, as a source serves them.
struct TrustDirectory {
    let path: String

    /// The chain from the lowest version on; `nil` when there is no version yet.
    ///
    /// - Throws: ``CommandFailure`` when a version is missing, cannot be read, or does not follow from the one before.
    func chain() throws -> TrustChain? {
        var chain: TrustChain?
        for version in try versions() {
            let file = "\(path)/\(version)"
            do {
                let text = try TrustText.read(file)
                if var known = chain {
                    try known.append(text)
                    chain = known
                } else {
                    chain = TrustChain(from: try TrustFile(shipped: text))
                }
            } catch let error as TrustFileError {
                throw CommandFailure("\(file) is refused. \(error.detail)", status: .configuration)
            }
            guard chain?.newest.version == version else {
                throw CommandFailure(
                    "\(file) has version \(chain?.newest.version ?? 0): a file's name is its version.",
                    status: .configuration)
            }
        }
        return chain
    }

    /// Puts a version there. What is there is never changed: apps may have it.
    func write(_ file: TrustFile) throws {
        try TrustText.write(file.compact, to: "\(path)/\(file.version)", mode: 0o644)
    }

    private func versions() throws -> [Int] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw CommandFailure.unreadable(path, error, "Name the directory with the versions of the trust file.")
        }
        return names.compactMap { name in Int(name).flatMap { String($0) == name ? $0 : nil } }.sorted()
    }
}

/// Reads and writes the small files of `assent config`.
enum TrustText {
    /// The text of a trust file.
    static func read(_ path: String) throws -> String {
        guard let text = String(validating: try bytes(path), as: UTF8.self) else {
            throw CommandFailure("\(path) is not a trust file: it is not text.", status: .configuration)
        }
        return text
    }

    /// The bytes of a file of at most 64 KiB; with `isPrivate` of one that other users may neither read nor change.
    static func bytes(_ path: String, isPrivate: Bool = false) throws -> [UInt8] {
        let data: Data
        do {
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            defer { try? handle.close() }
            if isPrivate { try checkPrivate(handle, path) }
            // One byte more than the most, so that a longer file is refused and not cut.
            data = try handle.read(upToCount: TrustFile.limit + 1) ?? Data()
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure.unreadable(path, error, "Check its name.")
        }
        guard data.count <= TrustFile.limit else {
            throw CommandFailure("\(path) has more than 64 KiB.", status: .configuration)
        }
        return Array(data)
    }

    /// Refuses a file that other users may read or change. It looks at the one that is open, so that it cannot be
    /// another one by then.
    static func checkPrivate(_ handle: FileHandle, _ path: String) throws {
        var status = stat()
        guard fstat(handle.fileDescriptor, &status) == 0, status.st_mode & 0o077 == 0 else {
            throw CommandFailure(
                "\(path) can be read by other users: run 'chmod 600 \(path)', and think who has seen it.",
                status: .configuration)
        }
    }

    /// Makes a file. One that is there stays as it is.
    static func write(_ text: String, to path: String, mode: mode_t) throws {
        try fill(try make(path, mode: mode), path, with: text)
    }

    /// Makes an empty file and opens it. One that is there stays as it is.
    static func make(_ path: String, mode: mode_t) throws -> FileHandle {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            let reason = errno == EEXIST ? "it is there already" : String(cString: strerror(errno))
            throw CommandFailure("\(path) cannot be made: \(reason).")
        }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Writes into the file that ``make(_:mode:)`` has made, and removes it if that fails.
    static func fill(_ handle: FileHandle, _ path: String, with text: String) throws {
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.synchronize()
        } catch {
            try? FileManager.default.removeItem(atPath: path)
            throw CommandFailure("\(path) cannot be written: \(error.localizedDescription)")
        }
    }
}
