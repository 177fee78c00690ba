package import AssentConfiguration
package import AssentCore
import AssentEngine
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
        findings += unseen(configuration)
        findings += providers(configuration)
        findings += webhook(configuration)
        findings += proxies(configuration)
        findings += closedRoutes(configuration)
        findings += kinds(configuration)
        findings += deviceConfigurations(configuration)
        findings += enforcement(configuration)
        findings += unasked(configuration)
        let faults = StartCheck.faults(configuration)
        findings += faults.map { Diagnosis(.problem, $0.text) }
        if let certificate = certificate(configuration, now: clock.now) { findings.append(certificate) }
        findings += missingBackup(configuration)
        // Nothing that lies in an unusable directory can be judged.
        guard !faults.contains(where: { $0.name == StartCheck.all[0].name }) else { return findings }
        findings += await database(configuration, clock: clock)
        findings += ports(configuration)
        findings.append(time(clock.now))
        return findings
    }

    /// What is found about a certificate that a start takes.
    private static func certificate(_ configuration: ServerConfiguration, now: Date) -> Diagnosis? {
        let path: String
        switch configuration.tls {
        case .generated: path = configuration.certificateFiles.chain
        case .files(let certificate, let privateKey):
            path = certificate
            guard
                let credentials = try? ServerCredentials.files(
                    certificate: certificate, privateKey: privateKey, in: configuration.file)
            else { return nil }
            if let host = try? credentials.hostsNotNamed(in: configuration.publicURLs).first {
                return Diagnosis(
                    .problem,
                    "the certificate \(certificate) does not name \(host), which is in publicURL: clients refuse it there"
                )
            }
        }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            return configuration.tls == .generated
                ? Diagnosis(.fine, "a certificate will be made at the first start")
                : Diagnosis(.problem, "the certificate \(path) cannot be read")
        }
        guard let document = try? PEMDocument.parseMultiple(pemString: text).first,
            let leaf = try? Certificate(pemDocument: document)
        else { return Diagnosis(.problem, "\(path) is not a certificate in PEM") }
        return validity(leaf, isRenewed: configuration.tls == .generated, now: now)
    }

    /// An operator's own certificate without that of its issuer: the server's clients' file has one pin then, and no
    /// client takes it.
    private static func missingBackup(_ configuration: ServerConfiguration) -> [Diagnosis] {
        guard case .files(let certificate, let privateKey) = configuration.tls,
            let credentials = try? ServerCredentials.files(
                certificate: certificate, privateKey: privateKey, in: configuration.file),
            credentials.pins.count == 1
        else { return [] }
        return [
            Diagnosis(
                .note,
                "the certificate of the issuer is not in \(certificate): client.yaml gets one pin without a backup, and "
                    + "no client accepts that. Append that certificate, or move the pin to singlePin, which locks every "
                    + "client out when the key changes")
        ]
    }

    /// For how long a certificate is valid. One that the server makes is renewed by itself.
    static func validity(_ leaf: Certificate, isRenewed: Bool, now: Date) -> Diagnosis {
        if leaf.notValidBefore > now {
            return Diagnosis(.problem, "the certificate is not valid yet: check the clock")
        }
        let days = Int(abs(leaf.notValidAfter.timeIntervalSince(now)) / 86_400)
        if isRenewed { return Diagnosis(.fine, "the certificate is renewed by each start that finds it old") }
        guard leaf.notValidAfter > now else {
            return Diagnosis(
                .problem, "the certificate has expired \(days) days ago, and clients refuse it: renew it now")
        }
        return Diagnosis(
            days >= 14 ? .fine : .problem,
            "the certificate is valid for \(days) more days" + (days >= 14 ? "" : ": renew it now"))
    }

    /// The SQLite file of a server that has no other database.
    private static func databaseFile(_ configuration: ServerConfiguration) -> String {
        configuration.dataDirectory + "/assent.sqlite"
    }

    /// Whether there is a database already. A database server's has been made by its operator.
    static func hasDatabase(_ configuration: ServerConfiguration) -> Bool {
        configuration.postgreSQL != nil || FileManager.default.fileExists(atPath: databaseFile(configuration))
    }

    /// Looks at the database, and reads what the statements say where its schema is this version's.
    ///
    /// - Throws: ``StoreError``, and what is wrong with the data directory.
    static func examined(
        _ configuration: ServerConfiguration, clock: any WallClock, reading: [SQLStatement]
    ) async throws -> DatabaseExamination {
        guard var postgreSQL = configuration.postgreSQL else {
            return try await DatabaseLocation.sqlite(path: databaseFile(configuration)).examine(reading: reading)
        }
        postgreSQL.node = try DataDirectory.existingNode(configuration.dataDirectory)
        return try await DatabaseLocation.postgresql(postgreSQL).examine(clock: clock, reading: reading)
    }

    private static func database(_ configuration: ServerConfiguration, clock: any WallClock) async -> [Diagnosis] {
        guard hasDatabase(configuration) else {
            // With requireDatabase it is among the faults of a start.
            let isMade = !configuration.requiresDatabase
            return (isMade ? [Diagnosis(.fine, "the database will be made at the first start")] : [])
                + users(configuration, stored: [])
        }
        let path = DatabaseAccess.keyPath(configuration)
        var findings: [Diagnosis] = []
        let key = try? DataDirectory.masterKey(at: path, isNamed: configuration.masterKeyFile != nil)
        if key != nil { findings.append(Diagnosis(.fine, "the master key \(path) is there, for this user alone")) }
        let reading =
            [
                MasterKeyCheck.reading, Nodes.reading, storedUsers(configuration), ServedDeviceConfiguration.reading,
            ] + sealingReads(configuration, clock)
        let found: DatabaseExamination
        do {
            found = try await examined(configuration, clock: clock, reading: reading)
        } catch {
            let name =
                configuration.postgreSQL.map { "the PostgreSQL database \($0.database)" }
                ?? "the database \(databaseFile(configuration))"
            return findings + [Diagnosis(.problem, "\(name): \(error.explanation)")]
        }
        findings += found.findings.map { Diagnosis($0.isProblem ? .problem : $0.isNote ? .note : .fine, $0.text) }
        findings += unfinished(found)
        if configuration.postgreSQL == nil, found.schema != .missing {
            findings.append(
                found.isWhole
                    ? Diagnosis(.fine, "the database is whole")
                    : Diagnosis(.problem, "the database is damaged: restore it from a backup, with its master key"))
        }
        if let schema = schema(found.schema) { findings.append(schema) }
        if let check = found.rows.first?.first, let key, !MasterKeyCheck.opens(check, with: key) {
            findings.append(
                Diagnosis(
                    .problem, "\(path) is not the master key of the database: restore the key that it was made with"))
        }
        if found.rows.count > 3 {
            findings += nodes(found.rows[1], configuration, now: clock.epochSeconds)
            findings += users(configuration, stored: found.rows[2])
            findings += served(found.rows[3], configuration, now: clock.epochSeconds)
            findings += sealing(configuration, found.rows.dropFirst(4).first)
        } else if found.schema == .missing {
            findings += users(configuration, stored: [])
        }
        return findings
    }

    private static func schema(_ state: SchemaState) -> Diagnosis? {
        switch state {
        case .current: nil
        case .missing: Diagnosis(.fine, "the tables will be made at the first start")
        case .older: Diagnosis(.note, state.description + ": make a backup first")
        case .newer, .foreign: Diagnosis(.problem, state.description)
        }
    }

    /// Which servers use the database, and which of them decide by other policies than the file says.
    private static func nodes(_ rows: [SQLRow], _ configuration: ServerConfiguration, now: Int64) -> [Diagnosis] {
        let present = rows.compactMap { try? Nodes.node($0) }.filter { $0.seenAt > now - Nodes.presence }
        let policies = Nodes.digest(of: configuration.realms.flatMap(\.policySets))
        return present.map { node in
            let name = "node \(node.id), last seen \(max(0, now - node.seenAt)) s ago"
            return node.policies == policies
                ? Diagnosis(.fine, "\(name), decides by the policies of this file")
                : Diagnosis(.note, "\(name), decides by other policies than this file: start it again with this file")
        }
    }

    private static func unfinished(_ found: DatabaseExamination) -> [Diagnosis] {
        guard found.isUnfinishedCopy else { return [] }
        return [
            Diagnosis(
                .problem,
                "a copy to this database was begun and has not ended: run the same 'assent database copy' again, "
                    + "or name an empty database")
        ]
    }

    private static func time(_ now: Date) -> Diagnosis {
        // Before this software was made, or generations after: one-time passwords and certificates cannot work.
        let plausible = 1_767_225_600.0...4_102_444_800.0
        return plausible.contains(now.timeIntervalSince1970)
            ? Diagnosis(.fine, "the clock says \(now.formatted(.iso8601))")
            : Diagnosis(.problem, "the clock says \(now.formatted(.iso8601)): set it (timedatectl set-ntp true)")
    }
}
