import AssentCore
public import Foundation

extension FileVault {
    /// What guards the vault, as its signed header says.
    public func info() async throws -> VaultInfo { VaultInfo(try await current().header) }

    /// All secrets without their values, sorted by name.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` as ``names()`` does.
    public func entries() async throws -> [VaultEntry] {
        try await reading { contents in
            try contents.manifest.shards.keys.flatMap { index in
                try self.shard(index, in: contents).entries.compactMap { name, entry in
                    entry.record.map {
                        VaultEntry(
                            name: name, version: entry.version, size: Int($0.length) - VaultSealer.overhead)
                    }
                }
            }.sorted { $0.name < $1.name }
        }
    }

    /// What the vault in `directory` says of itself, without any key; `nil` when there is none.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` when it cannot be read or is not a vault's file.
    public static func inspect(_ directory: URL) throws -> UnverifiedVaultInfo? {
        let path = directory.path(percentEncoded: false)
        let bytes = try storing { () -> [UInt8]? in
            guard let files = try PosixDirectory.existing(path, privacy: .onlyThisUser) else { return nil }
            if let bytes = try files.read(vaultFile, limit: VaultFile.sizeLimit) { return bytes }
            guard try !files.list().contains(where: isSealedFile) else { throw mainFileMissing }
            return nil
        }
        return try bytes.map { UnverifiedVaultInfo(claimed: VaultInfo(try VaultFile(decoding: $0).header)) }
    }

    /// Opens every secret, says which are damaged, and cleans up after updates and changes of key that were
    /// interrupted.
    ///
    /// - Parameter removingDamaged: whether to remove the secrets that cannot be opened; those in a list of names that
    ///   cannot be read go with it. The others stay as they are.
    /// - Returns: what was found and done.
    /// - Throws: ``/AssentCore/SecretStoreError`` when the vault as a whole cannot be opened or written to.
    public func check(removingDamaged: Bool = false) async throws -> VaultReport {
        try await updating { try await self.check($0, removingDamaged: removingDamaged) }
    }

    private func check(_ contents: Contents, removingDamaged: Bool) async throws -> VaultReport {
        var report = VaultReport()
        var manifest = contents.manifest
        var written: [String] = []
        for index in contents.manifest.shards.keys.sorted() {
            shardCache[index] = nil
            let shard: VaultShard
            do { shard = try expectingFiles { try self.shard(index, in: contents) } } catch let error
                as SecretStoreError
            {
                report.findings.append(.init(name: nil, error: error, isRemoved: removingDamaged))
                manifest.floor = max(manifest.floor, manifest.shards[index]?.highest ?? 0)
                manifest.shards[index] = nil
                continue
            }
            var kept = shard
            for (name, entry) in shard.entries.sorted(by: { $0.key < $1.key }) {
                guard let record = entry.record else { continue }
                do {
                    _ = try expectingFiles { try value(name, entry.version, record, contents.sealer) }
                    report.intact += 1
                } catch let error as SecretStoreError {
                    report.findings.append(.init(name: name, error: error, isRemoved: removingDamaged))
                    kept.entries[name] = VaultShard.Entry(version: entry.version, record: nil)
                } catch let failure as FileFailure {
                    // What cannot be read now may be readable later.
                    report.findings.append(.init(name: name, error: failure.asStoreError, isRemoved: false))
                }
            }
            if removingDamaged, kept != shard {
                manifest.shards[index] = try write(kept, index, contents.sealer, &written)
                shardCache[index] = nil
            }
        }
        if removingDamaged, manifest != contents.manifest {
            do { try await commit(manifest, of: contents) } catch let uncertain as UncertainCommit {
                throw uncertain
            } catch {
                abandon(written)
                throw error
            }
        }
        // Syncs the directory too: until this manifest is surely on the disk, a loss of power could bring back one that
        // needs an older key.
        report.removedLeftovers = try removeLeftovers(self.contents ?? contents)
        report.removedKeys = try await removeOldKeys(self.contents ?? contents)
        return report
    }

    private func removeLeftovers(_ contents: Contents) throws -> Int {
        let before = try files.list().count
        // A damaged list of names hides which records are in use; then only what is surely left over goes.
        do { try sweep(contents) } catch is SecretStoreError {} catch is MissingFile {}
        return before - (try files.list().count)
    }

    /// Keys of other epochs: of changes of key that were interrupted before they took effect, or before their last
    /// step.
    private func removeOldKeys(_ contents: Contents) async throws -> Int {
        let providerKeys = contents.providerKeys
        let prefix = ProviderKeys.keyPrefix(vaultID: contents.header.vaultID)
        return try await ProviderKeys.asking {
            let old = try await providerKeys.provider.keyNames().filter {
                $0.hasPrefix(prefix) && $0 != providerKeys.keyName
            }
            for name in old { try await providerKeys.provider.removeKey(named: name) }
            return old.count
        }
    }
}
