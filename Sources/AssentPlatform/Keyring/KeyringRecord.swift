#if Keyring && os(Linux)
import AssentCore
import AssentVault
import Crypto
import Foundation

/// One value in the kernel: a keyring `=<name in base64url>` with a key `head` and the keys `0`, `1`… of the value.
///
/// It is built in the thread's own keyring, which the kernel clears when the thread or the process ends, and then
/// linked into the store in one step, so that readers see the old record or the new one.
struct KeyringRecord {
    /// What the key `head` says. It does not expire with the value.
    struct Head: Hashable {
        static let length = 28 + checkLength
        static let checkLength = 16
        static let mark = Array("AssentR\u{1}".utf8)

        var version: UInt64
        var count: UInt32
        /// When the value expires, in seconds since 1970; 0 for never.
        var expiry: UInt64

        /// With a check in the end that ties it to the name.
        func encoded(for name: String) -> [UInt8] {
            var writer = VaultWriter()
            writer.raw(Self.mark)
            writer.integer(version)
            writer.integer(count)
            writer.integer(expiry)
            let check = SHA2.sha256(Array("assent keyring head".utf8) + writer.bytes + Array(name.utf8))
            writer.raw(check.prefix(Self.checkLength))
            return writer.bytes
        }
    }

    /// The kernel takes at most 32,767 bytes in a key.
    static let chunk = 32_000
    private static let digestLength = 32
    private static let prefix = "="

    let key: KernelKey
    let name: String

    static func description(of name: String) -> String { prefix + Base64URL.encode(Array(name.utf8)) }

    /// The name in a record's description; `nil` when it is not one that this library writes.
    static func name(in description: String) -> String? {
        guard description.hasPrefix(prefix), let bytes = Base64URL.decode(String(description.dropFirst())),
            let name = String(validating: bytes, as: UTF8.self), (try? SecretName.normalized(name)) == name,
            Self.description(of: name) == description
        else { return nil }
        return name
    }

    /// Builds a record in the thread's keyring.
    static func make(
        _ name: String, _ head: Head, _ value: Secret, timeToLive: UInt32?
    ) throws -> KeyringRecord {
        let ring = try KernelKey.add(.keyring, description(of: name), to: .thread)
        do {
            _ = try head.encoded(for: name).withUnsafeBytes { bytes in
                try KernelKey.add(.user, "head", bytes, to: ring)
            }
            // The digest expires with the value: it would say something about a value that is gone.
            var content = [UInt8](repeating: 0, count: digestLength + value.count)
            defer { Wipe.bytes(&content) }
            value.withUnsafeBytes { value in
                content.withUnsafeMutableBytes {
                    UnsafeMutableRawBufferPointer(rebasing: $0[digestLength...]).copyMemory(from: value)
                }
            }
            let digest = digest(name, head, content[digestLength...])
            content.withUnsafeMutableBytes { $0.copyBytes(from: digest) }
            try content.withUnsafeBytes { content in
                for (number, start) in stride(from: 0, to: content.count, by: chunk).enumerated() {
                    let part = content[start..<min(start + chunk, content.count)]
                    let key = try KernelKey.add(.user, "\(number)", UnsafeRawBufferPointer(rebasing: part), to: ring)
                    if let timeToLive { try key.expire(after: timeToLive) }
                }
            }
        } catch {
            ring.unlinkQuietly(from: .thread)
            throw error
        }
        return KeyringRecord(key: ring, name: name)
    }

    /// What the head says.
    ///
    /// - Throws: `tampered`, `expired`, `revoked`, …
    func head() throws -> Head {
        guard let key = try key.find(.user, "head", into: .thread) else {
            throw KeyringFailure.damaged("A secret has no head.")
        }
        defer { key.unlinkQuietly(from: .thread) }
        guard let bytes = try key.payload(Head.length), let head = Head(decoding: bytes, for: name) else {
            throw KeyringFailure.damaged("A secret's head makes no sense.")
        }
        return head
    }

    /// The value, proven to be what was written under this name.
    func value(now: Date) throws -> StoredSecret {
        let head = try head()
        let isOver = head.expiry != 0 && now.timeIntervalSince1970 >= Double(head.expiry)
        if isOver { throw KeyringFailure.expired }
        var content = [UInt8](repeating: 0, count: Self.digestLength + Int(head.count))
        defer { Wipe.bytes(&content) }
        try content.withUnsafeMutableBytes { content in
            for (number, start) in stride(from: 0, to: content.count, by: Self.chunk).enumerated() {
                guard let key = try key.find(.user, "\(number)", into: .thread) else {
                    throw KeyringFailure.damaged("A part of a secret is missing.")
                }
                defer { key.unlinkQuietly(from: .thread) }
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: content[start..<min(start + Self.chunk, content.count)])
                guard try key.read(into: part) == part.count else {
                    throw KeyringFailure.damaged("A part of a secret has another length.")
                }
            }
        }
        let digest = Self.digest(name, head, content[Self.digestLength...])
        guard ConstantTime.equal(digest, Array(content[..<Self.digestLength])) else {
            throw KeyringFailure.damaged("A secret is not what it was.")
        }
        let value = content[Self.digestLength...].withUnsafeBytes { Secret(bytes: $0) }
        return StoredSecret(value: value, version: head.version)
    }

    /// Against accidents and mix-ups: there is no key that another program of this user could not use.
    private static func digest(_ name: String, _ head: Head, _ value: ArraySlice<UInt8>) -> [UInt8] {
        var writer = VaultWriter()
        writer.raw("assent keyring".utf8)
        writer.raw(head.encoded(for: name))
        var hash = SHA256()
        hash.update(data: writer.bytes)
        value.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }
}

extension KeyringRecord.Head {
    fileprivate init?(decoding bytes: [UInt8], for name: String) {
        var reader = VaultReader(bytes)
        guard let mark = try? reader.raw(Self.mark.count), mark == Self.mark,
            let version = try? reader.integer(UInt64.self), (1...KeyringVersions.limit).contains(version),
            let count = try? reader.integer(UInt32.self), count <= UInt32(VaultLimits.valueBytes),
            let expiry = try? reader.integer(UInt64.self)
        else { return nil }
        self.init(version: version, count: count, expiry: expiry)
        guard ConstantTime.equal(encoded(for: name), bytes) else { return nil }
    }
}

/// Up to which version names have been used: in the key `versions` of a store.
struct KeyringVersions: Hashable {
    static let description = "versions"
    static let length = 24
    /// So that one more is always a version.
    static let limit = UInt64.max - 2
    private static let mark = Array("AssentK\u{1}".utf8)

    /// The highest version of a name that is not there any more; a new name starts above.
    var floor: UInt64 = 0
    /// The highest version of all.
    var highest: UInt64 = 0

    var encoded: [UInt8] {
        var writer = VaultWriter()
        writer.raw(Self.mark)
        writer.integer(floor)
        writer.integer(highest)
        return writer.bytes
    }
}

extension KeyringVersions {
    init?(decoding bytes: [UInt8]) {
        var reader = VaultReader(bytes)
        guard let mark = try? reader.raw(Self.mark.count), mark == Self.mark,
            let floor = try? reader.integer(UInt64.self), let highest = try? reader.integer(UInt64.self),
            reader.isAtEnd, floor <= highest, highest <= Self.limit
        else { return nil }
        self.init(floor: floor, highest: highest)
    }
}
#endif
