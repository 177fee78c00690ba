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
            "Brings the schema of an older database up to date, and changes nothing else. Exit status: 0 nothing is wrong, 78 something is."
    )

    @Option(name: .shortAndLong, help: "A server's file (assent.yaml) or a client's (client.yaml).")
    var config: String

    @Option(name: .long, help: "The profile whose vault is looked at, with a client's file.")
    var profile = "default"

    @Flag(name: .long, help: "Print the findings as JSON.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        let findings: [Finding]
        if let text = try? String(contentsOfFile: config, encoding: .utf8), text.contains("\nclient:") {
            try ClientProfile.check(name: profile)
            findings = ClientExamination(file: config).findings() + VaultExamination(profile: profile).findings()
        } else {
            findings = await ServerExamination.findings(file: config)
        }
        if json {
            console.emit(.array(findings.map(\.json)))
        } else {
            for finding in findings {
                let mark = finding.isFine ? console.styled("✓", .green) : console.styled("✗", .red)
                console.say("\(mark) \(finding.text)")
            }
        }
        if findings.contains(where: { !$0.isFine }) { throw ExitCode(78) }
    }
}

extension Finding {
    fileprivate var json: JSONValue { ["fine": .bool(isFine), "text": .string(text)] }
}

/// Looks at a profile's vault without its key: what guards it, and what that does not do.
struct VaultExamination {
    let profile: String
    var places = Places()

    func findings() -> [Finding] {
        do {
            let place = try VaultPlace(profile: profile, places: places)
            guard let info = try FileVault.inspect(place.directory) else {
                return [Finding(isFine: true, "profile \(profile) has no vault yet: assent login makes one")]
            }
            guard place.guardian.matches(info) else {
                return [
                    Finding(
                        isFine: false,
                        "the vault of profile \(profile) says that it is guarded in another way "
                            + "(\(info.claimed.protection.rawValue)) than you chose (\(place.guardian.name)): was it exchanged? "
                            + "Restore \(place.directory.path), or remove it and sign in again")
                ]
            }
            return info.claimed.lines.map { Finding(isFine: true, "vault of profile \(profile): \($0)") }
        } catch {
            return [Finding(isFine: false, "vault of profile \(profile): \(error)")]
        }
    }
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
