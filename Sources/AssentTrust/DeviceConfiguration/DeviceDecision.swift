import AssentCore
package import AssentSigningProtocol

/// What an app may do, by its own settings, the trust file in force and the device configuration. Each of them can
/// only take something away: the device configuration makes nothing possible that the others do not allow.
package struct DeviceDecision: Sendable, Hashable {
    /// What the app's own settings allow.
    package struct Wishes: Sendable, Hashable {
        /// Whether users are let in who are only remembered.
        package var implicit: Bool
        /// Whether sign-ins may leave nothing behind.
        package var stateless: Bool
        /// Where a browser may be led that the app signs in; `nil` when the app sets no limit of its own.
        package var webLinks: [String]?
        /// Whether the app seals its calls whatever anybody says.
        package var seals: Bool

        package init(implicit: Bool, stateless: Bool, webLinks: [String]? = nil, seals: Bool = false) {
            (self.implicit, self.stateless, self.webLinks, self.seals) = (implicit, stateless, webLinks, seals)
        }
    }

    /// Whether the app may do something with the server.
    package enum Permission: Sendable, Hashable {
        case allowed
        /// This version of the app must be updated.
        case outdated
        /// The app is one for development, and the server is not.
        case development
        /// The server has never said it, and cannot be asked.
        case unknown
    }

    /// Whether it may call at all. What was never told does not stop it.
    package let calls: Permission

    /// Whether it may register.
    package let registers: Permission

    /// Whether calls to the trust file's payload origins are sealed.
    package let seals: Bool

    package let implicit: Bool
    package let stateless: Bool

    /// Where a browser may be led; empty: nowhere.
    package let webLinks: [String]

    /// The environment whose servers refuse apps for development.
    private static let production = "production"

    /// Decides.
    ///
    /// - Parameters:
    ///   - wishes: the app's own settings.
    ///   - version: the app's version.
    ///   - trust: the trust file in force.
    ///   - configuration: the device configuration in force; `nil` when the server has never told one.
    package init(
        _ wishes: Wishes, version: String, trust: TrustContent, configuration: DeviceConfigurationContent?
    ) {
        let mode = trust.payload?.mode
        guard let configuration else {
            (calls, registers) = (.allowed, .unknown)
            // Where the server decides and has not been heard, the safe side is taken.
            seals = wishes.seals || mode != nil
            (implicit, stateless, webLinks) = (wishes.implicit, wishes.stateless, wishes.webLinks ?? [])
            return
        }
        calls = Self.calls(version, trust, configuration)
        registers = calls == .allowed && configuration.status != .enabled ? .outdated : calls
        seals = wishes.seals || mode == .always || mode == .server && configuration.payloadEncryption == .on
        implicit = wishes.implicit && configuration.implicit
        stateless = wishes.stateless && configuration.stateless
        webLinks = configuration.webLinks.filter { wishes.webLinks?.contains($0) ?? true }
    }

    private static func calls(
        _ version: String, _ trust: TrustContent, _ configuration: DeviceConfigurationContent
    ) -> Permission {
        if trust.development, configuration.audience.hasSuffix("/\(production)") { return .development }
        guard configuration.status != .disabled else { return .outdated }
        guard let minimum = configuration.minimumVersion else { return .allowed }
        // A version that cannot be compared is not known to be new enough.
        guard let own = DottedVersion(version), own >= minimum else { return .outdated }
        return .allowed
    }
}
