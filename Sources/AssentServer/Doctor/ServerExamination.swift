package import AssentConfiguration
package import AssentCore
import AssentStore
import Foundation
import SwiftASN1
import X509

/// Looks at everything that a server needs, without changing anything. What a start would change is among the findings.
package enum ServerExamination {
    /// What is found about the server of a configuration file.
    package static func findings(file: String, clock: any WallClock = SystemClock()) async -> [Diagnosis] {
        let configuration: ServerConfiguration
        do {
            configuration = try ServerConfiguration.load(file: file)
        } catch {
            return [Diagnosis(.problem, "\(error)")]
        }
        var findings = [Diagnosis(.fine, "\(file) has no mistake that can be seen in it")]
        if configuration.isDevelopment {
            findings.append(Diagnosis(.fine, "development mode: loopback only, generated secrets allowed"))
        }
        findings.append(certificate(configuration, now: clock.now))
        findings += await database(configuration, clock: clock)
        findings.append(time(clock.now))
        return findings
    }

    private static func certificate(_ configuration: ServerConfiguration, now: Date) -> Diagnosis {
        let path: String
        switch configuration.tls {
        case .generated: path = configuration.dataDirectory + "/server.pem"
        case .files(let certificate, let privateKey):
            path = certificate
            do {
                let credentials = try ServerCredentials.files(certificate: certificate, privateKey: privateKey)
                if let host = try credentials.hostsNotNamed(in: configuration.publicURLs).first {
                    return Diagnosis(
                        .problem,
                        "the certificate \(certificate) does not name \(host), which is in publicURL: clients refuse it there"
                    )
                }
            } catch {
                return Diagnosis(.problem, "the certificate: \(error)")
            }
        }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            return configuration.tls == .generated
                ? Diagnosis(.fine, "a certificate will be made at the first start")
                : Diagnosis(.problem, "the certificate \(path) cannot be read")
        }
        guard let document = try? PEMDocument.parseMultiple(pemString: text).first,
            let leaf = try? Certificate(pemDocument: document)
        else { return Diagnosis(.problem, "\(path) is no certificate in PEM") }
        let days = Int(leaf.notValidAfter.timeIntervalSince(now) / 86_400)
        if leaf.notValidBefore > now {
            return Diagnosis(.problem, "the certificate is not valid yet: check the clock")
        }
        let renews = configuration.tls == .generated
        return Diagnosis(
            renews || days >= 14 ? .fine : .problem,
            "the certificate is valid for \(days) more days" + (renews || days >= 14 ? "" : ": renew it now"))
    }

    private static func database(_ configuration: ServerConfiguration, clock: any WallClock) async -> [Diagnosis] {
        let path = configuration.dataDirectory + "/assent.sqlite"
        if configuration.postgreSQL == nil, !FileManager.default.fileExists(atPath: path) {
            return [Diagnosis(.fine, "the database will be made at the first start")]
        }
        let key = configuration.masterKeyFile ?? configuration.dataDirectory + "/master.key"
        var findings: [Diagnosis] = []
        do {
            _ = try PrivateFile.read(key, limit: 4096, isNamed: configuration.masterKeyFile != nil)
            findings.append(Diagnosis(.fine, "the master key \(key) is there, for this user alone"))
        } catch {
            findings.append(Diagnosis(.problem, "the master key: \(error)"))
        }
        if let postgreSQL = configuration.postgreSQL { return findings + (await server(postgreSQL, clock: clock)) }
        return findings + (await content(ofDatabase: path))
    }

    private static func server(_ configuration: PostgreSQLConfiguration, clock: any WallClock) async -> [Diagnosis] {
        do {
            if let file = configuration.passwordFile { _ = try PrivateFile.read(file, limit: 4096, isNamed: true) }
            let found = try await DatabaseLocation.postgresql(configuration).examine(clock: clock)
            let findings = found.findings.map { Diagnosis($0.isProblem ? .problem : .fine, $0.text) }
            return switch found.schema {
            case .current: findings
            case .missing: findings + [Diagnosis(.fine, "the tables will be made at the first start")]
            case .older: findings + [Diagnosis(.note, found.schema.description + ": make a backup first")]
            case .newer, .foreign: findings + [Diagnosis(.problem, found.schema.description)]
            }
        } catch {
            return [Diagnosis(.problem, "the PostgreSQL database \(configuration.database): \(error)")]
        }
    }

    /// What is in the database: read only, so that a look at it never changes its schema.
    private static func content(ofDatabase path: String) async -> [Diagnosis] {
        do {
            let found = try await DatabaseLocation.sqlite(path: path).examine()
            let whole =
                found.isWhole
                ? Diagnosis(.fine, "the database is whole")
                : Diagnosis(.problem, "the database is damaged: restore it from a backup, with its master key")
            return switch found.schema {
            case .current: [whole]
            case .missing: [Diagnosis(.fine, found.schema.description)]
            case .older: [whole, Diagnosis(.note, found.schema.description + ": make a backup first")]
            case .newer, .foreign: [whole, Diagnosis(.problem, "\(found.schema) (\(path))")]
            }
        } catch {
            return [Diagnosis(.problem, "the database \(path): \(error)")]
        }
    }

    private static func time(_ now: Date) -> Diagnosis {
        // Before this software was made, or generations after: one-time passwords and certificates cannot work.
        let plausible = 1_767_225_600.0...4_102_444_800.0
        return plausible.contains(now.timeIntervalSince1970)
            ? Diagnosis(.fine, "the clock says \(now.formatted(.iso8601))")
            : Diagnosis(.problem, "the clock says \(now.formatted(.iso8601)): set it (timedatectl set-ntp true)")
    }
}
