import ArgumentParser
import Assent
import AssentConfiguration
import AssentCore
import AssentServer
import Foundation

/// `assent doctor`
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look for what is wrong with a configuration, and say how to fix it.",
        discussion:
            """
            Without --config it looks at the profile: the file that 'assent login --config' kept. With a client's file it \
            compares the pins with the CA's file and with the certificates that each server shows. If they hold, it asks the \
            server, without signing in, whether it has the realm, the client with its redirect URI and scopes, the journey and \
            the cookie of the file; and with a trust file, what it tells this version of the app (the device \
            configuration), and whether the app would take that. It also says what guards the profile's vault and what that does not do, and lists what could guard one on \
            this machine: key file, passphrase, PKCS#11 tokens, TPM, Secure Enclave; and whether programs can keep secrets in \
            the kernel's keyring instead.

            With a server's file and --trust it compares the trust file with that file and with the database: hosts that the \
            trust file does not name, payload keys that the server lacks, has withdrawn or soon ends, what must come sealed \
            and has no keys there, and the key of the device configuration. With a gateway's file it compares the hosts.

            Changes nothing (a journey is begun at the server, which nobody goes on with), and says what a start would change. Exit status: 0 nothing is wrong, 78 something is.
            """)

    @Option(
        name: .shortAndLong,
        help:
            "A server's or a gateway's file (assent.yaml) or a client's (client.yaml); otherwise the one that the profile keeps.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Option(name: .long, help: "The profile that is looked at. Default: default.")
    var profile: String?

    @Option(
        name: .long,
        help: "A trust file: what ends in it, and how it fits the certificates that are served, or the server's file.",
        completion: .file())
    var trust: String?

    @Flag(name: .long, help: "Print as JSON: findings, and of a client keyProviders, secretStores and vault.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        var findings: [Diagnosis]
        var providers: [KeyProviderStatus] = []
        var stores: [SecretStoreStatus] = []
        var result = JSONObject()
        if let config, !Self.isClient(config) {
            guard profile == nil else {
                throw ValidationError("--profile is for a client; \(config) is a server's file.")
            }
            if GatewayExamination.concerns(file: config) {
                findings = await GatewayExamination.findings(file: config)
                if let trust {
                    findings += await ServerTrustExamination(
                        trust: trust, config: config, clock: SystemClock()
                    ).findings()
                }
            } else {
                findings = await ServerExamination.findings(file: config)
                findings += await ServedTrustExamination(file: config, clock: SystemClock()).findings(beside: trust)
            }
        } else {
            let profile = profile ?? "default"
            try ClientProfile.check(name: profile)
            let vault = await VaultExamination(profile: profile).examined()
            findings =
                await ClientExamination(profile: profile, file: config, trust: trust)
                .findings() + vault.findings
            (providers, stores) = (vault.providers, vault.stores)
            result["vault"] = vault.json ?? .null
            result["keyProviders"] = .array(providers.map(\.json))
            result["secretStores"] = .array(stores.map(\.json))
        }
        for provider in providers where provider.guardsVault && provider.reason != nil {
            findings.append(Diagnosis(.problem, provider.text))
        }
        if json {
            result["findings"] = .array(findings.map(\.json))
            console.emit(.object(result))
        } else {
            for finding in findings {
                console.say("\(finding.mark(console)) \(finding.text)")
            }
            for provider in providers where !provider.guardsVault || provider.reason == nil {
                console.say("\(provider.reason == nil ? console.styled("✓", .green) : "–") \(provider.text)")
            }
            for store in stores {
                console.say("\(store.reason == nil ? console.styled("✓", .green) : "–") \(store.text)")
            }
        }
        try console.finish()
        if findings.contains(where: { $0.verdict == .problem }) { throw ExitCode(78) }
    }

    private static func isClient(_ file: String) -> Bool {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return false }
        return text.split(whereSeparator: \.isNewline).contains { $0.hasPrefix("client:") }
    }
}

extension Diagnosis {
    fileprivate var json: JSONValue {
        ["fine": .bool(verdict != .problem), "note": .bool(verdict == .note), "text": .string(text)]
    }

    fileprivate func mark(_ console: Console) -> String {
        switch verdict {
        case .fine: console.styled("✓", .green)
        case .note: "–"
        case .problem: console.styled("✗", .red)
        }
    }
}
