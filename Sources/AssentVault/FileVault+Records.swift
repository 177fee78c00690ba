import AssentCore
import Crypto
import Foundation

extension FileVault {
    static func isSealedFile(_ name: String) -> Bool {
        name.hasPrefix("r-") || name.hasPrefix("s-")
    }

    static func recordName(_ file: SealedFile) -> String { "r-" + Hex.encode(file.id) }
    static func shardName(_ file: SealedFile) -> String { "s-" + Hex.encode(file.id) }

    func value(_ name: String, in contents: Contents) throws -> StoredSecret? {
        let index = contents.sealer.shardIndex(of: name)
        guard let entry = try shard(index, in: contents).entries[name], let record = entry.record else { return nil }
        let value = try self.value(name, entry.version, record, contents.sealer)
        return StoredSecret(value: value, version: entry.version)
    }

    func value(_ name: String, _ version: UInt64, _ record: SealedFile, _ sealer: VaultSealer) throws -> Secret {
        let sealed = try read(Self.recordName(record), as: record, limit: VaultLimits.valueBytes + VaultSealer.overhead)
        return try sealer.open(sealed, name: name, version: version, file: record.id)
    }

    func shard(_ index: UInt8, in contents: Contents) throws -> VaultShard {
        guard let reference = contents.manifest.shards[index] else { return VaultShard() }
        if let cached = shardCache[index], cached.file == reference.file { return cached.shard }
        let file = reference.file
        let sealed = try read(Self.shardName(file), as: file, limit: Self.shardLimit)
        let context = contents.sealer.shardContext(index: index, file: file.id)
        do {
            let shard = try VaultShard(
                decoding: Array(contents.sealer.open(sealed, as: .shard, bound: context)))
            shardCache[index] = (file, shard)
            return shard
        } catch is VaultReader.Malformed {
            throw SecretStoreError.tampered("A list of names is not what this library writes.")
        }
    }

    private func read(_ name: String, as file: SealedFile, limit: Int) throws -> [UInt8] {
        let bytes: [UInt8]?
        do {
            bytes = try files.read(name, limit: limit)
        } catch let failure as FileFailure {
            guard case .tooLong = failure.reason else { throw failure }
            throw SecretStoreError.tampered("A file of the vault is longer than it was.")
        }
        guard let bytes else { throw MissingFile() }
        guard bytes.count >= Int(file.length) else {
            throw SecretStoreError.truncated("A file of the vault \(bytes.isEmpty ? "is empty" : "was cut off").")
        }
        guard file.has(bytes) else {
            throw SecretStoreError.tampered("A file of the vault was changed.")
        }
        return bytes
    }

    /// One update, under the lock: the new record and the new list of names are written beside the old ones, and the
    /// new manifest makes them current.
    func apply(
        _ name: String, _ value: Secret?, _ expected: ExpectedVersion, to contents: Contents
    ) async throws -> UInt64 {
        let index = contents.sealer.shardIndex(of: name)
        var shard = try expectingFiles { try self.shard(index, in: contents) }
        let old = shard.entries[name]
        let live = old?.record == nil ? nil : old?.version
        try expected.check(live)
        if value == nil, live == nil { return 0 }
        var manifest = contents.manifest
        guard value == nil || live != nil || manifest.count < VaultLimits.entries else {
            throw SecretStoreError.tooMany
        }
        var written: [String] = []
        do {
            var version = old?.version ?? manifest.floor
            if let value {
                version += 1
                let record = try write(value, name, version, contents.sealer, &written)
                shard.entries[name] = VaultShard.Entry(version: version, record: record)
            } else {
                shard.entries[name] = VaultShard.Entry(version: version, record: nil)
            }
            manifest.floor = max(manifest.floor, shard.foldRemoved())
            manifest.shards[index] = try write(shard, index, contents.sealer, &written)
            try await commit(manifest, of: contents)
            if let new = manifest.shards[index] { shardCache[index] = (new.file, shard) }
            discard(contents.manifest.shards[index].map { Self.shardName($0.file) }, old?.record.map(Self.recordName))
            return value == nil ? 0 : version
        } catch let uncertain as UncertainCommit {
            throw uncertain
        } catch {
            abandon(written)
            throw error
        }
    }

    func clear(_ contents: Contents) async throws {
        var manifest = VaultManifest()
        manifest.generation = contents.manifest.generation
        manifest.counter = contents.manifest.counter
        manifest.floor = max(contents.manifest.floor, contents.manifest.shards.values.map(\.highest).max() ?? 0)
        try await commit(manifest, of: contents)
        shardCache = [:]
        // A removal that a power cut undoes is made up for by the next sweep.
        for name in try files.list() where Self.isSealedFile(name) { try files.remove(name) }
    }

    func write(
        _ value: Secret, _ name: String, _ version: UInt64, _ sealer: VaultSealer, _ written: inout [String]
    ) throws -> SealedFile {
        try write("r-", &written) { id in
            try sealer.seal(value, name: name, version: version, file: id)
        }
    }

    func write(
        _ shard: VaultShard, _ index: UInt8, _ sealer: VaultSealer, _ written: inout [String]
    ) throws -> VaultManifest.Shard? {
        if shard.entries.isEmpty { return nil }
        let file = try write("s-", &written) { id in
            try sealer.seal(shard.encoded, as: .shard, bound: sealer.shardContext(index: index, file: id))
        }
        return VaultManifest.Shard(
            file: file, count: UInt32(clamping: shard.liveNames.count), highest: shard.highest)
    }

    private func write(
        _ prefix: String, _ written: inout [String], _ seal: (_ id: [UInt8]) throws -> [UInt8]
    ) throws -> SealedFile {
        let id = random.bytes(SealedFile.idLength)
        let sealed = try seal(id)
        let name = prefix + Hex.encode(id)
        written.append(name)
        try files.writeDurably(sealed, to: name)
        return SealedFile(id: id, content: sealed)
    }

    /// Makes `manifest` the current one, as the next generation, under the key that the vault has.
    func commit(_ manifest: VaultManifest, of contents: Contents) async throws {
        var counted: UInt64 = 0
        if let counter = contents.providerKeys.counter {
            counted = try await ProviderKeys.counted(counter, upTo: contents.manifest.counter)
        }
        try await commit(
            manifest, header: contents.header, sealer: contents.sealer, providerKeys: contents.providerKeys,
            counted: counted)
    }

    /// Makes `manifest` the current one, as the next generation, under a new key.
    func commit(
        _ manifest: VaultManifest, header: VaultHeader, sealer: VaultSealer, providerKeys: ProviderKeys
    ) async throws {
        var counted: UInt64 = 0
        if let counter = providerKeys.counter { counted = try await ProviderKeys.asking { try await counter.value() } }
        try await commit(manifest, header: header, sealer: sealer, providerKeys: providerKeys, counted: counted)
    }

    private func commit(
        _ manifest: VaultManifest, header: VaultHeader, sealer: VaultSealer, providerKeys: ProviderKeys, counted: UInt64
    ) async throws {
        var next = manifest
        next.generation += 1
        next.counter = providerKeys.counter == nil ? 0 : counted + 1
        let sealed = try sealer.seal(next.encoded, as: .manifest, bound: header.encoded)
        let signed = VaultFile.signedPart(header: header, sealedManifest: sealed)
        let bytes = signed + (try await providerKeys.sign(signed))
        let temporary = "t-" + Hex.encode(random.bytes(SealedFile.idLength))
        do {
            try files.writeDurably(bytes, to: temporary)
            // What the manifest refers to must be found after a crash that keeps the rename.
            try files.syncDirectory()
        } catch {
            abandon([temporary])
            throw error
        }
        do {
            try files.rename(temporary, to: Self.vaultFile)
            try files.syncDirectory()
        } catch {
            sweepIsDue = true
            throw UncertainCommit(cause: error)
        }
        contents = Contents(bytes: bytes, header: header, sealer: sealer, providerKeys: providerKeys, manifest: next)
        if let counter = providerKeys.counter {
            do { try await ProviderKeys.raise(counter, to: next.counter) } catch {
                sweepIsDue = true
                throw UncertainCommit(cause: error)
            }
        }
    }

    /// Removes what a commit replaced. A file that stays behind is found by the next sweep.
    func discard(_ names: String?...) {
        for name in names.compactMap(\.self) {
            do { try files.remove(name) } catch { sweepIsDue = true }
        }
    }

    func abandon(_ names: [String]) {
        for name in names { discard(name) }
    }

    /// Removes files that no manifest refers to, which interrupted updates leave behind. Under the lock.
    func sweep(_ contents: Contents) throws {
        // The process that made this manifest current may have died before it was on the disk.
        try files.syncDirectory()
        let names = try files.list()
        for name in names where name.hasPrefix("t-") { try files.remove(name) }
        let sealed = names.filter(Self.isSealedFile)
        if sealed.count != contents.manifest.shards.count + contents.manifest.count {
            var known: Set<String> = []
            for (index, reference) in contents.manifest.shards {
                known.insert(Self.shardName(reference.file))
                let shard = try shard(index, in: contents)
                known.formUnion(shard.entries.values.compactMap { $0.record.map(Self.recordName) })
            }
            for name in sealed where !known.contains(name) { try files.remove(name) }
        }
        sweepIsDue = false
    }

    func expectingFiles<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch is MissingFile {
            throw SecretStoreError.tampered("A file of the vault is missing.")
        }
    }
}

/// The manifest may or may not have been replaced, so neither the old files nor the new ones may be removed yet.
struct UncertainCommit: Error {
    let cause: any Error
}

extension VaultSealer {
    func manifest(opening sealed: [UInt8], header: VaultHeader) throws -> VaultManifest {
        do {
            return try VaultManifest(decoding: Array(open(sealed, as: .manifest, bound: header.encoded)))
        } catch is VaultReader.Malformed {
            throw SecretStoreError.tampered("The manifest is not what this library writes.")
        }
    }

    /// The byte of the lock file that stands for `name`. It depends on nothing that a change of key changes.
    package static func lockOffset(of name: String, vaultID: [UInt8]) -> Int64 {
        let digest = SHA256.hash(data: Array("assent vault lease".utf8) + vaultID + Array(name.utf8))
        let number = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int64(number >> 2) | 1
    }
}
