import AssentCore
import AssentEngine
import AssentOTP
import AssentSigningProtocol

/// Reads `signing` of a realm: what devices make, and what users are asked.
struct SigningLoader {
    let reader: SettingsReader<Void>
    let realm: String

    func settings() throws -> SigningSettings {
        // The address is known when the server listens; until then only the rest can be checked.
        let issuer = SigningIssuer(name: "https://localhost/signing\(RealmPath.path(of: realm))", realm: realm)
        var settings = SigningSettings(issuer: issuer, name: reader.string("name"))
        settings.policies = try reader.mappings("policies").map {
            try SigningPolicyLoader(reader: $0.value).policy($0.key)
        }
        if reader.has("keys") { settings.keys = try reader.list("keys").map { try key($0, settings.policies) } }
        settings.transportPolicy = reader.string("transport", default: SigningSettings.policyID)
        if reader.has("keystores") { settings.keystores = Set(reader.strings("keystores")) }
        if reader.has("codes") { settings.oneTimeKeys = try reader.list("codes").map(oneTimeKey) }
        settings.limits.containers = reader.integer("devices", default: 5, in: 1...20)
        settings.keyLifetime = Int64(reader.integer("keyDays", default: 365, in: 1...3650)) * 86400
        settings.approvalDelay = Int64(reader.integer("approvalDelaySeconds", default: 0, in: 0...30 * 86400))
        settings.freshness = Int64(reader.integer("freshSeconds", default: 300, in: 10...3600))
        settings.freshLevel = reader.integer("freshLevel", default: 0, in: 0...1000)
        for (label, authenticator) in reader.mappings("authenticators") {
            settings.levels[label] = authenticator.integer("level", default: 0, in: 0...1000)
            authenticator.finish()
        }
        if let maker = reader.optionalString("resets") {
            guard ["user", "administrator"].contains(maker) else {
                throw reader.issue("resets", "can only be: user, administrator")
            }
            settings.resetsByAdministrator = maker == "administrator"
        }
        for (name, template) in reader.mappings("templates") {
            guard SigningLabel.isValid(name) else {
                throw reader.issue("templates", "a template's name has 1 to 32 of a–z, 0–9 and -")
            }
            settings.templates[name] = try self.template(template)
        }
        reader.finish()
        if let fault = settings.faults().first { throw reader.issue(nil, fault) }
        return settings
    }

    private func key(_ reader: SettingsReader<Void>, _ policies: [ProtectionPolicy]) throws -> OfferedKey {
        let usage: SigningKeyUsage = try choice("usage", of: reader)
        let key = SigningSettings.offered(
            usage, reader.string("label"), policy: reader.string("policy", default: SigningSettings.policyID),
            of: policies)
        reader.finish()
        return key
    }

    private func oneTimeKey(_ reader: SettingsReader<Void>) throws -> OneTimeKeySettings {
        let type = reader.string("type")
        let kind: OneTimeKeySettings.Kind
        switch type {
        case "totp": kind = .time(period: reader.integer("period", default: 30, in: TOTP.allowedPeriods))
        case "hotp": kind = .counter
        case "ocra":
            guard let suite = try? OCRASuite(reader.string("suite")) else {
                throw reader.issue("suite", "must be a suite of RFC 6287, for example OCRA-1:HOTP-SHA256-8:QN08")
            }
            kind = .challenge(suite)
        default: throw reader.issue("type", "can only be: totp, hotp, ocra")
        }
        var key = OneTimeKeySettings(label: reader.string("label"), kind: kind)
        if type != "ocra" {
            key.digits = reader.integer("digits", default: 6, in: HOTP.allowedDigits)
            if let name = reader.optionalString("algorithm") {
                guard let algorithm = OTPAlgorithm(name: name) else {
                    throw reader.issue("algorithm", "can only be: SHA1, SHA256, SHA512")
                }
                key.algorithm = algorithm
            }
        }
        reader.finish()
        return key
    }

    private func template(_ reader: SettingsReader<Void>) throws -> SigningTemplate {
        var template = SigningTemplate(title: reader.localizedText("title") ?? LocalizedText(""))
        if reader.has("kind") { template.kind = try choice("kind", of: reader) }
        template.text = reader.localizedText("text")
        template.warning = reader.localizedText("warning")
        template.lifetime = Int64(reader.integer("ttl", default: 180, in: 10...3600))
        if let match = reader.optionalString("match") {
            guard match == "number" else { throw reader.issue("match", "can only be: number") }
            template.matchesNumber = true
        }
        template.fields = try reader.list("fields").map { field in
            let read = SigningTemplate.Field(
                id: field.string("id"), label: field.localizedText("label") ?? LocalizedText(""),
                type: try choice("type", of: field), pointer: field.string("from"))
            field.finish()
            guard read.pointer.isEmpty || read.pointer.hasPrefix("/") else {
                throw field.issue("from", "must be a JSON Pointer, for example /0/amount")
            }
            return read
        }
        template.notShown = reader.strings("notShown")
        if reader.has("statuses") { template.statuses = try reader.list("statuses").map(status) }
        reader.finish()
        return template
    }

    private func status(_ reader: SettingsReader<Void>) throws -> SigningTemplate.Status {
        let status = SigningTemplate.Status(
            name: reader.string("name"), label: reader.localizedText("label") ?? LocalizedText(""),
            effect: try choice("effect", of: reader), keys: reader.strings("keys"),
            reason: reader.has("reason") ? try choice("reason", of: reader) : .none)
        reader.finish()
        return status
    }

    private func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ key: String, of reader: SettingsReader<Void>
    ) throws -> Choice {
        guard let choice = Choice(rawValue: reader.string(key)) else {
            let known = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw reader.issue(key, "can only be: \(known)")
        }
        return choice
    }
}
