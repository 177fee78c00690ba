import AssentCore
import AssentJOSE
import Foundation

/// The versions of an app's trust file that lie in a directory, each under its number (docs/trust-file.md, "Served by
/// assent serve").
///
/// What is asked is looked up by its number in what was read here: no name that comes from a client is ever opened.
/// Signatures are not verified: an app does that, and `assent doctor`.
struct TrustFileDirectory: Sendable {
    /// A version as it is served.
    struct Version: Sendable, Hashable {
        let bytes: [UInt8]
        /// The value of `ETag`.
        let tag: String
        fileprivate let stamp: Stamp
    }

    /// What tells a file that has changed from one that has not.
    fileprivate struct Stamp: Sendable, Hashable {
        let device: UInt64
        let node: UInt64
        let size: Int64
        let seconds: Int64
        let nanoseconds: Int64
    }

    /// Why a directory cannot be read.
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    /// How many names a directory may have.
    static let maximumNames = 4096

    /// How many versions are served; the highest ones.
    static let maximumVersions = 1000

    /// How many bytes all of them may have.
    static let maximumBytes = 4 << 20

    /// How many bytes a version may have, see `TrustFile.limit`.
    static let fileLimit = 64 << 10

    /// The versions, by number.
    let versions: [Int: Version]

    /// What is wrong with files that are not served, in the order of their versions.
    let faults: [String]

    /// Reads a directory.
    ///
    /// - Parameters:
    ///   - path: where it is.
    ///   - known: what was read before: what has not changed is not read again.
    /// - Throws: ``Unreadable``.
    init(_ path: String, knowing known: [Int: Version] = [:]) throws(Unreadable) {
        guard let root = Self.resolved(path), let names = try? FileManager.default.contentsOfDirectory(atPath: root)
        else { throw Unreadable(description: "the directory cannot be read") }
        guard names.count <= Self.maximumNames else {
            throw Unreadable(description: "the directory has more than \(Self.maximumNames) names")
        }
        // Only what is written as a source asks for it. Editors and copying programs leave other names.
        let numbers = names.compactMap(Self.number).sorted(by: >)
        var versions: [Int: Version] = [:]
        var faults: [String] = []
        var left = Self.maximumBytes
        for number in numbers.prefix(Self.maximumVersions) {
            do throws(Unreadable) {
                let version = try Self.version(number, in: root, known[number])
                left -= version.bytes.count
                guard left >= 0 else {
                    faults.append("all versions up to \(number): the later ones fill \(Self.maximumBytes >> 20) MiB")
                    break
                }
                versions[number] = version
            } catch {
                faults.append("\(number) \(error)")
            }
        }
        if let first = numbers.dropFirst(Self.maximumVersions).first {
            faults.append("all versions up to \(first): there are \(Self.maximumVersions) later ones")
        }
        (self.versions, self.faults) = (versions, faults.reversed())
    }

    /// A version's number, written as only it can be: from 1 to 2^31, without zeros before it.
    static func number(_ text: some StringProtocol) -> Int? {
        guard text.utf8.count <= 10, let number = Int(text), 1...1 << 31 ~= number, String(number) == text else {
            return nil
        }
        return number
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    private static func version(
        _ number: Int, in root: String, _ known: Version?
    ) throws(Unreadable) -> Version {
        // Kubernetes makes links within a directory. One that leads out of it could show any file of this machine.
        guard let path = resolved("\(root)/\(number)") else { throw Unreadable(description: "cannot be read") }
        guard path.hasPrefix(root == "/" ? root : root + "/") else {
            throw Unreadable(description: "is a link to what is not in the directory")
        }
        // Not to wait for somebody who writes, should it be a pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { throw Unreadable(description: "cannot be read") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Unreadable(description: "is not a plain file")
        }
        let stamp = Stamp(status)
        if let known, known.stamp == stamp { return known }
        guard status.st_size <= fileLimit else { throw Unreadable(description: "has more than 64 KiB") }
        // One byte more than the most: it may have grown.
        guard let data = try? handle.read(upToCount: fileLimit + 1), data.count <= fileLimit else {
            throw Unreadable(description: "cannot be read, or has more than 64 KiB")
        }
        let bytes = Array(data)
        if let fault = fault(of: bytes, number) { throw Unreadable(description: fault) }
        let tag = "\"\(Base64URL.encode(SHA2.sha256(bytes).prefix(16)))\""
        return Version(bytes: bytes, tag: tag, stamp: stamp)
    }

    /// What a file that is being copied, or is another one, has wrong. The app that asks for it would refuse it.
    private static func fault(of bytes: [UInt8], _ number: Int) -> String? {
        guard let text = String(validating: bytes, as: UTF8.self),
            let message = try? UnverifiedJWS.parse(text, limit: fileLimit), message.type == "assent-trust+jwt",
            let version = try? JSONValue.parse(message.payload)["version"]?.integer
        else { return "is not a trust file, or not all of one" }
        return version == Int64(number) ? nil : "has version \(version): a file's name is its version"
    }
}

extension TrustFileDirectory.Stamp {
    fileprivate init(_ status: stat) {
        #if canImport(Darwin)
        let time = status.st_mtimespec
        #else
        let time = status.st_mtim
        #endif
        self.init(
            device: UInt64(truncatingIfNeeded: status.st_dev), node: UInt64(status.st_ino), size: Int64(status.st_size),
            seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }
}
