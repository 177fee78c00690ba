import AssentCore
import Crypto
import Foundation

/// A sealed file that the manifest or a shard refers to: its random name, and length and digest of its ciphertext.
package struct SealedFile: Hashable, Sendable {
    let id: [UInt8]
    let length: UInt32
    let digest: [UInt8]

    init(id: [UInt8], length: UInt32, digest: [UInt8]) {
        self.id = id
        self.length = length
        self.digest = digest
    }

    /// The file called `id` with this content.
    package init(id: [UInt8], content: [UInt8]) {
        self.init(
            id: id, length: UInt32(clamping: content.count),
            digest: SHA256.hash(data: content).withUnsafeBytes { [UInt8]($0) })
    }

    /// Whether it has this content.
    package func has(_ content: [UInt8]) -> Bool {
        ConstantTime.equal(SHA256.hash(data: content).withUnsafeBytes { [UInt8]($0) }, digest)
    }

    static let idLength = 16
    static let digestLength = 32

    func write(to writer: inout VaultWriter) {
        writer.raw(id)
        writer.integer(length)
        writer.raw(digest)
    }

    static func read(from reader: inout VaultReader) throws(VaultReader.Malformed) -> SealedFile {
        SealedFile(
            id: try reader.raw(idLength), length: try reader.integer(UInt32.self), digest: try reader.raw(digestLength))
    }
}

/// The root of everything in a vault. Replacing it is what commits an update.
///
/// It does not list the names itself but 64 shards that do, so that an update rewrites one shard, not the whole list.
struct VaultManifest: Hashable, Sendable {
    static let shardCount: UInt8 = 64

    struct Shard: Hashable, Sendable {
        let file: SealedFile
        /// How many secrets it lists.
        let count: UInt32
        /// The highest version in it, also of removed names.
        let highest: UInt64
    }

    /// Counts the commits.
    var generation: UInt64 = 0
    /// What the counter outside of the vault shows once this is committed; 0 without one.
    var counter: UInt64 = 0
    /// Names that are not listed any more had versions up to this one; a new name starts above.
    var floor: UInt64 = 0
    var shards: [UInt8: Shard] = [:]

    var count: Int { shards.values.reduce(0) { $0 + Int($1.count) } }

    var encoded: [UInt8] {
        var writer = VaultWriter()
        writer.integer(generation)
        writer.integer(counter)
        writer.integer(floor)
        writer.integer(UInt8(clamping: shards.count))
        for (index, shard) in shards.sorted(by: { $0.key < $1.key }) {
            writer.integer(index)
            shard.file.write(to: &writer)
            writer.integer(shard.count)
            writer.integer(shard.highest)
        }
        return writer.bytes
    }

    init() {}

    init(decoding bytes: [UInt8]) throws(VaultReader.Malformed) {
        var reader = VaultReader(bytes)
        generation = try reader.integer(UInt64.self)
        counter = try reader.integer(UInt64.self)
        floor = try reader.integer(UInt64.self)
        for _ in 0..<(try reader.integer(UInt8.self)) {
            let index = try reader.integer(UInt8.self)
            guard index < Self.shardCount else { throw VaultReader.Malformed() }
            shards[index] = Shard(
                file: try SealedFile.read(from: &reader), count: try reader.integer(UInt32.self),
                highest: try reader.integer(UInt64.self))
        }
        guard reader.isAtEnd else { throw VaultReader.Malformed() }
    }
}

/// A part of the list of names.
struct VaultShard: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        let version: UInt64
        /// Where the value is; `nil` when the name was removed at this version.
        let record: SealedFile?
    }

    var entries: [String: Entry] = [:]

    var liveNames: [String] { entries.filter { $0.value.record != nil }.map(\.key) }
    var highest: UInt64 { entries.values.map(\.version).max() ?? 0 }

    /// Forgets removed names when there are many, and says up to which version they went.
    mutating func foldRemoved() -> UInt64 {
        let removed = entries.filter { $0.value.record == nil }
        guard removed.count > VaultLimits.removedNames else { return 0 }
        for name in removed.keys { entries[name] = nil }
        return removed.values.map(\.version).max() ?? 0
    }

    var encoded: [UInt8] {
        var writer = VaultWriter()
        writer.integer(UInt32(clamping: entries.count))
        for (name, entry) in entries {
            writer.counted(Array(name.utf8))
            writer.integer(entry.version)
            writer.integer(UInt8(entry.record == nil ? 0 : 1))
            entry.record?.write(to: &writer)
        }
        return writer.bytes
    }

    init() {}

    init(decoding bytes: [UInt8]) throws(VaultReader.Malformed) {
        var reader = VaultReader(bytes)
        for _ in 0..<(try reader.integer(UInt32.self)) {
            let nameBytes = try reader.counted(limit: VaultLimits.nameScalars * 4)
            guard let name = String(validating: nameBytes, as: UTF8.self) else { throw VaultReader.Malformed() }
            let version = try reader.integer(UInt64.self)
            let isLive = try reader.integer(UInt8.self) == 1
            entries[name] = Entry(version: version, record: isLive ? try SealedFile.read(from: &reader) : nil)
        }
        guard reader.isAtEnd else { throw VaultReader.Malformed() }
    }
}
