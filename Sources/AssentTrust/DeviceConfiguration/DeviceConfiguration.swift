import AssentCore
package import AssentSigningProtocol

/// What a server has told this version of an app, with a good signature (`docs/device-configuration.md`).
package struct DeviceConfiguration: Sendable, Hashable {
    /// How many seconds the clocks of device and server may differ.
    package static let tolerance = 600

    /// How many seconds a version may be ahead of the time that it counts in, since servers' clocks are put right. One
    /// that is further ahead would outlast the key that has signed it: no later one would ever be taken.
    package static let lead = 86_400

    /// The document as it came.
    let compact: String

    package let content: DeviceConfigurationContent

    /// A document that one of `keys` has signed for this very version of the app.
    ///
    /// - Parameters:
    ///   - text: the compact JWS.
    ///   - keys: those that the trust file in force names in `config`.
    ///   - app: who reads it.
    /// - Throws: ``TrustFileError``.
    package init(_ text: String, keys: [ProtocolKey], for app: ConfiguredApp) throws(TrustFileError) {
        let message = try SignedDocument(text, .deviceConfiguration)
        try message.verify(with: keys)
        let content: DeviceConfigurationContent = try message.content()
        guard content.audience.utf8.elementsEqual(app.audience.utf8) else {
            throw TrustFileError(
                .wrongAudience, "The device configuration is for \(content.audience), and not for \(app.audience).")
        }
        guard content.appVersion.utf8.elementsEqual(app.version.utf8) else {
            throw TrustFileError(
                .wrongAudience,
                "The device configuration is for version \(content.appVersion), and not for \(app.version).")
        }
        (compact, self.content) = (message.compact, content)
    }

    /// Whether it can be what the server says at a time, in seconds since 1970.
    func isFresh(at now: Int) -> Bool {
        content.issuedAt - Self.tolerance <= now && now < content.expires + Self.tolerance
    }
}

extension DeviceConfigurationContent {
    /// Whether it allows nothing that another one forbids. Rules for PINs are not compared: others are no fewer.
    func allowsNoMore(than other: Self) -> Bool {
        let isMinimumKept = other.minimumVersion.map { old in minimumVersion.map { $0 >= old } ?? false } ?? true
        return status.strictness >= other.status.strictness && isMinimumKept
            && (payloadEncryption == .on || other.payloadEncryption == .off)
            && (!implicit || other.implicit) && (!stateless || other.stateless)
            && Set(webLinks).isSubset(of: other.webLinks) && pin == other.pin
    }
}

extension ServedStatus {
    /// What takes more away has the higher number.
    fileprivate var strictness: Int {
        switch self {
        case .enabled: 0
        case .loginOnly: 1
        case .disabled: 2
        }
    }
}

/// Who reads a device configuration.
package struct ConfiguredApp: Sendable, Hashable {
    /// `app/platform/environment`, that of the trust file.
    package let audience: String
    /// The app's version.
    package let version: String

    package init(audience: String, version: String) { (self.audience, self.version) = (audience, version) }
}
