import AssentStore

/// What the versions of an app may do, as the operator's file says.
///
/// A version is an installation's own word: this stops honest apps that are out of date, and nobody who lies.
package struct AppVersions: Sendable, Hashable {
    /// What a version may do.
    package enum Status: String, Sendable, Hashable, CaseIterable {
        /// Everything.
        case enabled
        /// All but register.
        case loginOnly
        /// Nothing but change or end its registration.
        case disabled
    }

    /// Whether the calls of a version are sealed (docs/payload-encryption.md, "The server's switch").
    package enum Sealing: String, Sendable, Hashable, CaseIterable {
        /// It gets no session of payload encryption.
        case off
        /// It may seal its calls, where the server has keys.
        case allowed
        /// What comes plainly by its client id or its access tokens is refused.
        case required
    }

    /// What the versions that are named may do. Their names are visible ASCII, so that Swift and SQL compare alike.
    package let named: [String: Status]

    /// What all others may do, and installations that say no version.
    package let others: Status

    /// Whether the versions that are named seal their calls; those that are missing here may.
    package let sealing: [String: Sealing]

    /// Whether all others do.
    package let othersSealing: Sealing

    /// How many versions an app may name.
    package static let limit = 256

    /// How many bytes a version's name may have.
    package static let nameLimit = 64

    /// Versions; without a name all may do everything.
    package init(
        named: [String: Status] = [:], others: Status = .enabled, sealing: [String: Sealing] = [:],
        othersSealing: Sealing = .allowed
    ) {
        (self.named, self.others) = (named, others)
        (self.sealing, self.othersSealing) = (sealing, othersSealing)
    }

    /// Whether a version can be named like this in the file.
    package static func isName(_ text: String) -> Bool {
        (1...nameLimit).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// What a version may do; `nil` stands for an installation that says none.
    func status(of version: String?) -> Status {
        // Unicode has other spellings of what Swift takes for equal.
        guard let version, Self.isName(version) else { return others }
        return named[version] ?? others
    }

    /// Whether a version seals its calls; `nil` stands for an installation that says none.
    package func sealing(of version: String?) -> Sealing {
        guard let version, Self.isName(version), named[version] != nil else { return othersSealing }
        return sealing[version] ?? .allowed
    }

    /// The versions whose calls must be sealed, in order; `default` stands for all that are not named.
    package var sealed: [String] {
        sealing.filter { $0.value == .required && named[$0.key] != nil }.keys.sorted()
            + (othersSealing == .required ? ["default"] : [])
    }

    /// The versions that get no session of payload encryption and are served, in order; `default` stands for all that
    /// are not named.
    package var unsealed: [String] {
        named.filter { $0.value != .disabled && sealing[$0.key] == .off }.keys.sorted()
            + (othersSealing == .off && others != .disabled ? ["default"] : [])
    }

    /// Why an installation of this version may not register; `nil` when it may.
    func registrationRefusal(of version: String?) -> OAuthError? {
        guard status(of: version) != .enabled else { return nil }
        guard let version, Self.isName(version), named[version] != nil else {
            return OAuthError(
                .invalidClientMetadata, "software_version is not a version of the app that may register.",
                reason: .versionUnknown)
        }
        return OAuthError(
            .invalidClientMetadata, "This version of the app registers no more: it must be updated.",
            reason: .versionOutdated)
    }

    /// That an installation may be served whose version is in `column`: the same rule as ``status(of:)``.
    func isServed(_ column: SQL) -> SQL {
        condition(on: column, others: others != .disabled) { named[$0] != .disabled }
    }

    /// That an installation may call plainly whose version is in `column`: the same rule as ``sealing(of:)``.
    func mayCallPlainly(_ column: SQL) -> SQL {
        condition(on: column, others: othersSealing != .required) { sealing[$0] != .required }
    }

    /// What holds for all versions that are not named, and for those that are named by `isAllowed`.
    private func condition(on column: SQL, others: Bool, _ isAllowed: (String) -> Bool) -> SQL {
        let different = named.keys.filter { isAllowed($0) != others }.sorted()
        let isOneOfThem = different.reduce("1 = 0" as SQL) { "\($0) OR \(column) = \($1)" }
        if !others { return "(\(isOneOfThem))" }
        guard !different.isEmpty else { return "1 = 1" }
        return "(\(column) IS NULL OR NOT (\(isOneOfThem)))"
    }
}

extension OAuthProviderConfiguration {
    /// Whether installations of the client's app are served in this version. A client of the file always is.
    func isServed(_ clientID: String, version: String?) -> Bool {
        guard client(clientID) == nil, let app = app(ofInstance: clientID) else { return true }
        return app.versions.status(of: version) != .disabled
    }

    /// Whether what comes plainly by the client in this version is refused. A client of the file may always.
    func requiresSealing(_ clientID: String, version: String?) -> Bool {
        guard client(clientID) == nil, let app = app(ofInstance: clientID) else { return false }
        return app.versions.sealing(of: version) == .required
    }
}

extension OAuthApp {
    /// Refuses a plain request about an installation of a version whose calls must be sealed.
    ///
    /// - Throws: ``OAuthError/payloadEncryptionRequired``.
    package func admit(_ metadata: InstanceMetadata, isSealed: Bool) throws(OAuthError) {
        guard isSealed || versions.sealing(of: metadata.version) != .required else { throw .payloadEncryptionRequired }
    }
}

extension OAuthError {
    /// The version of the installation is disabled.
    static let versionDisabled = OAuthError(
        .unauthorizedClient, "This version of the app is served no more: it must be updated.",
        reason: .versionOutdated)

    /// The request has come plainly, and the installation's version must seal its calls.
    package static let payloadEncryptionRequired = OAuthError(
        .payloadEncryptionRequired, EngineError(.payloadEncryptionRequired).detail)
}
