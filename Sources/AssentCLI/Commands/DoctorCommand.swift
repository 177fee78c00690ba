import ArgumentParser
import Assent
import AssentCore
import AssentServer
import Foundation

/// `assent doctor`
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look for what is wrong with a configuration, and say how to fix it.",
        discussion:
            """
            With a client's file it also says what guards the profile's vault and what that does not do, and lists what could \
            guard one on this machine: key file, passphrase, PKCS#11 tokens, TPM, Secure Enclave; and whether programs can keep \
            secrets in the kernel's keyring instead.

            Brings the schema of an older database up to date, and changes nothing else. Exit status: 0 nothing is wrong, \
            78 something is.
            """)

    @Option(name: .shortAndLong, help: "A server's file (assent.yaml) or a client's (client.yaml).")
    var config: String

    @Option(name: .long, help: "The profile whose vault is looked at, with a client's file.")
    var profile = "default"

    @Flag(name: .long, help: "Print as JSON: findings, and with a client's file keyProviders, secretStores, vault.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        var findings: [Finding]
        var providers: [KeyProviderStatus] = []
        var stores: [SecretStoreStatus] = []
        var result = JSONObject()
        if let text = try? String(contentsOfFile: config, encoding: .utf8), text.contains("\nclient:") {
            try ClientProfile.check(name: profile)
            let vault = await VaultExamination(profile: profile).examined()
            findings = ClientExamination(file: config).findings() + vault.findings
            (providers, stores) = (vault.providers, vault.stores)
            result["vault"] = vault.json ?? .null
            result["keyProviders"] = .array(providers.map(\.json))
            result["secretStores"] = .array(stores.map(\.json))
        } else {
            findings = await ServerExamination.findings(file: config)
        }
        for provider in providers where provider.guardsVault && provider.reason != nil {
            findings.append(Finding(isFine: false, provider.text))
        }
        if json {
            result["findings"] = .array(findings.map(\.json))
            console.emit(.object(result))
        } else {
            for finding in findings {
                let mark = finding.isFine ? console.styled("✓", .green) : console.styled("✗", .red)
                console.say("\(mark) \(finding.text)")
            }
            for provider in providers where !provider.guardsVault || provider.reason == nil {
                console.say("\(provider.reason == nil ? console.styled("✓", .green) : "–") \(provider.text)")
            }
            for store in stores {
                console.say("\(store.reason == nil ? console.styled("✓", .green) : "–") \(store.text)")
            }
        }
        if findings.contains(where: { !$0.isFine }) { throw ExitCode(78) }
    }
}

extension Finding {
    fileprivate var json: JSONValue { ["fine": .bool(isFine), "text": .string(text)] }
}

/// Looks at a client's file: the file, the CA, the pins.
private struct ClientExamination {
    let file: String

    func findings() -> [Finding] {
        let client: ClientFile
        do {
            client = try ClientFile.load(file)
        } catch {
            return [Finding(isFine: false, "\(error)")]
        }
        var findings = [Finding(isFine: true, "\(file) can be read")]
        if let authority = client.authority {
            findings.append(
                FileManager.default.isReadableFile(atPath: authority)
                    ? Finding(isFine: true, "the CA's file \(authority) is there")
                    : Finding(isFine: false, "the CA's file \(authority) is missing: has the server made a new one?"))
        }
        let hosts = Set(
            ([client.server] + client.resources.map(\.origin)).compactMap { URLComponents(string: $0)?.host })
        for host in hosts.sorted() {
            let count = client.pins.first { $0.host == host }.map { Set($0.pins).count } ?? 0
            findings.append(
                count >= 2
                    ? Finding(isFine: true, "\(host) has \(count) pins")
                    : Finding(
                        isFine: false,
                        "\(host) has \(count) pins: name two, so that one key can be replaced without harm"))
        }
        return findings
    }
}
