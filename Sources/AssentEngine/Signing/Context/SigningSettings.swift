package import AssentSigningProtocol

/// How a realm offers transaction signing.
package struct SigningSettings: Sendable {
    package var issuer: SigningIssuer
    /// The issuer's name, as users see it.
    package var name: String
    /// The keys that a device makes besides its `device` and its `transport` key.
    package var keys: [OfferedKey]
    /// How keys are protected that need a password; the policy ``policyID`` is there besides.
    package var policies: [ProtectionPolicy] = []
    /// The policy of the key that opens what the server sends.
    package var transportPolicy = SigningSettings.policyID
    /// The kinds of key providers that devices may have. A device only says what it has: nothing proves it.
    package var keystores = Keystore.standardKinds
    /// The keys for one-time codes that a device gets.
    package var oneTimeKeys: [OneTimeKeySettings] = []
    package var templates: [String: SigningTemplate]
    /// How many devices and transactions there may be.
    package var limits = SigningLimits()
    /// Seconds until a container's keys expire.
    package var keyLifetime: Int64 = 365 * 86400
    /// Seconds for which a new container may not approve.
    package var approvalDelay: Int64 = 0
    /// For how many seconds an authentication is fresh enough to make an invite.
    package var freshness: Int64 = 300
    /// The level of that authentication.
    package var freshLevel = 0
    /// The level of a session that a login with a PIN makes, by the label of the `auth` key; 0 for others.
    package var levels: [String: Int] = [:]
    /// Whether only an administrator begins a reset: new keys that no old ones vouch for, for example after a forgotten
    /// PIN.
    package var resetsByAdministrator = false

    /// How a realm offers it. The keys are those beside `device` and `transport`.
    package init(
        issuer: SigningIssuer, name: String,
        keys: [OfferedKey] = SigningSettings.standardKeys,
        templates: [String: SigningTemplate] = [:]
    ) {
        self.issuer = issuer
        self.name = name
        self.keys = keys
        self.templates = templates
    }

    /// One key for transactions and one for sign-ins, both bound to the device only.
    package static let standardKeys = [
        OfferedKey(usage: .sign, label: "payments", policy: policyID),
        OfferedKey(usage: .auth, label: "sign-in", policy: policyID),
    ]

    /// The policy of keys that are bound to the device only.
    package static let policyID = "device"

    var offeredKeys: [OfferedKey] {
        [
            OfferedKey(usage: .device, label: "device", policy: Self.policyID),
            Self.offered(.transport, "transport", policy: transportPolicy, of: policies),
        ] + keys + oneTimeKeys.map { OfferedKey(usage: .otp, label: $0.label, policy: Self.policyID) }
    }

    /// What a new PIN must be like that signs users in (docs/resources.md, "Logins"); `nil` where none does.
    package var loginRules: PasswordRules? {
        keys.lazy.filter { $0.usage == .auth }.compactMap { key in
            policies.first { $0.id == key.policy }?.password
        }.first { $0.mode == .assisted }?.rules
    }

    /// What is wrong, one sentence each; empty when nothing is.
    package func faults() -> [String] {
        var faults: [String] = []
        if !SigningTemplate.isShowable(name, 64) { faults.append(SigningTemplate.rule("the name", 64)) }
        if !IssuerName.isValid(issuer.name) {
            faults.append("transaction signing needs a public URL with https, without user, query and fragment")
        }
        if keystores.isEmpty || !keystores.allSatisfy(Keystore.isKind) {
            faults.append("a keystore is named by 1 to 32 of a–z, 0–9 and -, and there must be one")
        }
        let labels = offeredKeys.map(\.label)
        if Set(labels).count != labels.count || !labels.allSatisfy(SigningLabel.isValid) {
            faults.append("each key has a label of its own of a–z, 0–9 and -")
        }
        if keys.count(where: { $0.usage == .sign }) > 4 || keys.count(where: { $0.usage == .auth }) > 2
            || !keys.allSatisfy({ $0.usage == .sign || $0.usage == .auth })
        {
            faults.append("a device has at most 4 keys of usage sign and 2 of usage auth")
        }
        faults += offerFaults()
        if oneTimeKeys.count > 4 || offeredKeys.count > 8 {
            faults.append("a device has at most 4 keys for one-time codes, and 8 keys in all")
        }
        faults += oneTimeKeys.flatMap { $0.faults() }
        for (label, level) in levels where !SigningLabel.isValid(label) || !(0...1000).contains(level) {
            faults.append("authenticators: \(label) has a label of a–z, 0–9 and -, and a level of 0 to 1000")
        }
        if !(1...20).contains(limits.containers) { faults.append("a user has 1 to 20 devices") }
        if !(86400...3650 * 86400).contains(keyLifetime) { faults.append("keys live for a day to ten years") }
        for (name, template) in templates.sorted(by: { $0.key < $1.key }) {
            faults += template.faults(keys: keys).map { "template \(name): \($0)" }
        }
        return faults
    }
}
