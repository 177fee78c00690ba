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

    /// What the versions that are named may do. Their names are visible ASCII, so that Swift and SQL compare alike.
    package let named: [String: Status]

    /// What all others may do, and installations that say no version.
    package let others: Status

    /// How many versions an app may name.
    package static let limit = 256

    /// How many bytes a version's name may have.
    package static let nameLimit = 64

    /// Versions; without a name all may do everything.
    package init(named: [String: Status] = [:], others: Status = .enabled) {
        self.named = named
        self.others = others
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
        func isOne(of status: (Status) -> Bool) -> SQL {
            named.filter { status($0.value) }.keys.sorted().reduce("1 = 0" as SQL) { "\($0) OR \(column) = \($1)" }
        }
        if others == .disabled { return "(\(isOne { $0 != .disabled }))" }
        guard named.values.contains(.disabled) else { return "1 = 1" }
        return "(\(column) IS NULL OR NOT (\(isOne { $0 == .disabled })))"
    }
}

extension OAuthProviderConfiguration {
    /// Whether installations of the client's app are served in this version. A client of the file always is.
    func isServed(_ clientID: String, version: String?) -> Bool {
        guard client(clientID) == nil, let app = app(ofInstance: clientID) else { return true }
        return app.versions.status(of: version) != .disabled
    }
}

extension OAuthError {
    /// The version of the installation is disabled.
    static let versionDisabled = OAuthError(
        .unauthorizedClient, "This version of the app is served no more: it must be updated.",
        reason: .versionOutdated)
}
