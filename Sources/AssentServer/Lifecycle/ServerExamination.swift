package import AssentCore
import AssentStore
import Foundation
import SwiftASN1
import X509

/// One thing that was looked at.
package struct Finding: Sendable, Hashable {
    /// Whether it is as it should be.
    package let isFine: Bool

    /// Whether it is worth knowing although nothing is wrong: a choice that was made, or what could not be looked at.
    package let isNote: Bool

    /// What was found and, when it is not fine, what to do.
    package let text: String

    /// A finding.
    package init(isFine: Bool, _ text: String) {
        self.isFine = isFine
        isNote = false
        self.text = text
    }

    /// Something worth knowing.
    package init(note text: String) {
        isFine = true
        isNote = true
        self.text = text
    }
}

/// Looks at everything that a server needs, without changing anything.
package enum ServerExamination {
    /// What is found about the server of a configuration file.
    package static func findings(file: String, clock: any WallClock = SystemClock()) async -> [Finding] {
        let configuration: ServerConfiguration
        do {
            configuration = try ServerConfiguration.load(file: file)
        } catch {
            return [Finding(isFine: false, "\(error)")]
        }
        var findings = [Finding(isFine: true, "\(file) has no mistake that can be seen in it")]
        if configuration.isDevelopment {
            findings.append(Finding(isFine: true, "development mode: loopback only, generated secrets allowed"))
        }
        findings.append(certificate(configuration, now: clock.now))
        findings += await database(configuration, clock: clock)
        findings.append(time(clock.now))
        return findings
    }

    private static func certificate(_ configuration: ServerConfiguration, now: Date) -> Finding {
        let path: String
        switch configuration.tls {
        case .generated: path = configuration.dataDirectory + "/server.pem"
        case .files(let certificate, let privateKey):
            path = certificate
            do {
                let credentials = try ServerCredentials.files(certificate: certificate, privateKey: privateKey)
                if let host = try credentials.hostsNotNamed(in: configuration.publicURLs).first {
                    return Finding(
                        isFine: false,
                        "the certificate \(certificate) does not name \(host), which is in publicURL: clients refuse it there"
                    )
                }
            } catch {
                return Finding(isFine: false, "the certificate: \(error)")
            }
        }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            return configuration.tls == .generated
                ? Finding(isFine: true, "a certificate will be made at the first start")
                : Finding(isFine: false, "the certificate \(path) cannot be read")
        }
        guard let document = try? PEMDocument.parseMultiple(pemString: text).first,
            let leaf = try? Certificate(pemDocument: document)
        else { return Finding(isFine: false, "\(path) is no certificate in PEM") }
        let days = Int(leaf.notValidAfter.timeIntervalSince(now) / 86_400)
        if leaf.notValidBefore > now {
            return Finding(isFine: false, "the certificate is not valid yet: check the clock")
        }
        let renews = configuration.tls == .generated
        return Finding(
            isFine: renews || days >= 14,
            "the certificate is valid for \(days) more days" + (renews || days >= 14 ? "" : ": renew it now"))
    }

    private static func database(_ configuration: ServerConfiguration, clock: any WallClock) async -> [Finding] {
        let path = configuration.dataDirectory + "/assent.sqlite"
        guard FileManager.default.fileExists(atPath: path) else {
            return [Finding(isFine: true, "the database will be made at the first start")]
        }
        let key = configuration.masterKeyFile ?? configuration.dataDirectory + "/master.key"
        var findings: [Finding] = []
        do {
            _ = try PrivateFile.read(key, limit: 4096, isNamed: configuration.masterKeyFile != nil)
            findings.append(Finding(isFine: true, "the master key \(key) is there, for this user alone"))
        } catch {
            findings.append(Finding(isFine: false, "the master key: \(error)"))
        }
        do {
            let database = try await SQLiteDatabase(path: path, clock: clock)
            let rows = try await database.run(.read("PRAGMA quick_check"))
            let isWhole = try rows.first?.text("quick_check") == "ok"
            try database.close()
            findings.append(
                isWhole
                    ? Finding(isFine: true, "the database is whole")
                    : Finding(isFine: false, "the database is damaged: restore it from a backup, with its master key"))
        } catch {
            findings.append(Finding(isFine: false, "the database \(path): \(error)"))
        }
        return findings
    }

    private static func time(_ now: Date) -> Finding {
        // Before this software was made, or generations after: one-time passwords and certificates cannot work.
        let plausible = 1_767_225_600.0...4_102_444_800.0
        return plausible.contains(now.timeIntervalSince1970)
            ? Finding(isFine: true, "the clock says \(now.formatted(.iso8601))")
            : Finding(isFine: false, "the clock says \(now.formatted(.iso8601)): set it (timedatectl set-ntp true)")
    }
}
