import AssentCore

extension FileVault {
    /// Gives the vault new keys and a new data key, and seals everything anew: at the same provider, at another, or
    /// with another protection level. This is the only way in which a vault's protection changes, up or down.
    ///
    /// It happens whole or not at all, also when the process is killed in the middle; until it is done it needs the
    /// vault's space twice. Afterwards the old keys are destroyed, so that old copies of the vault cannot be read any
    /// more. Other processes that have the vault open go on when their ``VaultKeys`` allow the new provider.
    ///
    /// - Parameter keys: what is to guard the vault from now on; it replaces what the vault was opened with.
    /// - Returns: what became of the old keys.
    /// - Throws: ``/AssentCore/SecretStoreError`` as opening does, with `keyUnavailable` when the new provider cannot
    ///   be used, and `tampered` or `truncated` when a record is damaged: see ``check(removingDamaged:)``. The vault is
    ///   then as it was.
    public func rekey(to keys: VaultKeys) async throws -> RekeyOutcome {
        let providers = keys.providers(for: surroundings)
        return try await updating { try await self.rekey($0, to: providers) }
    }

    private func rekey(_ old: Contents, to keys: VaultProviders) async throws -> RekeyOutcome {
        let (epoch, isTooLarge) = old.header.epoch.addingReportingOverflow(1)
        guard !isTooLarge else {
            throw SecretStoreError(.invalidInput, "The keys were changed too often. Make a new vault.")
        }
        let vaultID = old.header.vaultID
        let provider = try await keys.providerForNewVault()
        let providerKeys = try await ProviderKeys.make(vaultID: vaultID, epoch: epoch, provider: provider)
        var written: [String] = []
        do {
            let (header, sealer) = try await seal(
                vaultID: vaultID, epoch: epoch, providerKeys: providerKeys, level: keys.level)
            let manifest = try expectingFiles { try reseal(old, sealer: sealer, &written) }
            try await commit(manifest, header: header, sealer: sealer, providerKeys: providerKeys)
        } catch let uncertain as UncertainCommit {
            // The new keys may be the vault's already, so that neither the old nor the new ones may be destroyed.
            if let bytes = try? files.read(Self.vaultFile, limit: VaultFile.sizeLimit),
                let file = try? VaultFile(decoding: bytes), file.header.epoch == epoch
            {
                self.keys = keys
            }
            throw uncertain
        } catch {
            abandon(written)
            try? await providerKeys.remove()
            throw error
        }
        self.keys = keys
        shardCache = [:]
        sweepIsDue = true
        if let contents { try? sweep(contents) }
        do {
            try await old.providerKeys.remove()
            return RekeyOutcome(oldKeyRemains: nil)
        } catch {
            return RekeyOutcome(
                oldKeyRemains: "The old key \(old.providerKeys.keyName) could not be destroyed at its provider "
                    + "(\(old.providerKeys.provider.kind)): \(error.explanation) Remove it there.")
        }
    }

    /// Seals all that `old` refers to for the new data key, beside the old files.
    private func reseal(
        _ old: Contents, sealer: VaultSealer, _ written: inout [String]
    ) throws -> VaultManifest {
        var shards: [UInt8: VaultShard] = [:]
        for index in old.manifest.shards.keys.sorted() {
            for (name, entry) in try shard(index, in: old).entries {
                var record: SealedFile?
                if let sealed = entry.record {
                    let value = try value(name, entry.version, sealed, old.sealer)
                    record = try write(value, name, entry.version, sealer, &written)
                }
                // The names are spread by the data key.
                shards[sealer.shardIndex(of: name), default: VaultShard()].entries[name] =
                    VaultShard.Entry(version: entry.version, record: record)
            }
        }
        var manifest = VaultManifest()
        manifest.generation = old.manifest.generation
        manifest.floor = old.manifest.floor
        for (index, shard) in shards {
            manifest.shards[index] = try write(shard, index, sealer, &written)
        }
        return manifest
    }
}

/// What became of the old keys.
public struct RekeyOutcome: Hashable, Sendable {
    /// `nil` when the old keys were destroyed; otherwise why not, and what to do.
    public let oldKeyRemains: String?
}
