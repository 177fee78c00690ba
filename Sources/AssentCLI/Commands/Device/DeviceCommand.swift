import ArgumentParser
import Assent
import AssentSigning
import AssentSigningProtocol
import Foundation

/// `assent device`
struct DeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device", abstract: "Let this machine be a device that shows transactions and signs the answers.",
        discussion: """
            In one terminal, signed in:   assent device invite
            In another, on the device:    assent device enroll CODE
            There, when it is enrolled:   assent device listen

            Type the digits that 'enroll' shows into the first terminal. 'listen' waits for transactions.

            A container is one enrolment: the keys that this device has for one user of one issuer.

            The device's keys are in a file of its profile, and somebody who can read it can sign as this device. For keys \
            in a token or a TPM, or under a passphrase, say --keys with the first 'enroll'.

            'assent transactions' lists, shows and answers transactions one by one.
            """,
        subcommands: [
            Invite.self, Enroll.self, List.self, Listen.self, Scan.self, Renew.self, PIN.self, Rename.self,
            Evidence.self, Remove.self,
        ])

    /// `assent device invite`
    struct Invite: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "invite",
            abstract: "Invite a device of yours: print a code, and ask for the digits that the device shows.",
            discussion: "You must have signed in within the last minutes ('assent login').")

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Option(
            name: .long, parsing: .unconditional,
            help: "Give this container new keys (a reset), and enrol no new one. Its id: 'assent device list'.")
        var container: String?

        @Flag(name: .long, help: "Also print the text of the QR code, for 'assent device enroll --qr-file'.")
        var qr = false

        func run() async throws {
            let calls = SessionCalls(client, console: result.console)
            let wish = JSONValue(omittingNil: ["did": container.map { .string($0) }])
            let path = IssuerPath.invites.path()
            let made = try await calls.send(expecting: 201) { .post("\($0("signing"))\(path)", json: wish) }
            guard let pid = made["pid"]?.string, let code = made["code"]?.string, let text = made["qr"]?.string else {
                throw CommandFailure("The server's answer is not an invite.")
            }
            let issuer = try calls.address(of: "signing")
            if result.json {
                calls.console.emit(["issuer": .string(issuer), "code": .string(code), "qr": .string(text)])
            }
            let lines = Self.lines(code: code, issuer: issuer, qr: qr ? text : nil, resets: container != nil)
            for line in lines { calls.console.say(line) }
            calls.console.warn(
                "Type only the digits that you read from the device in your hand: nobody else, also not somebody on the "
                    + "phone, needs to know them or to tell you any.")
            let (prompt, place) = (Prompt(), IssuerPath.digits.path(PercentEncoding.encode(pid)))
            for _ in 0..<3 {
                let digits = try prompt.line("The eight digits that the device shows")
                do {
                    let answer = try await calls.send {
                        .post("\($0("signing"))\(place)", json: ["digits": .string(digits)])
                    }
                    if result.json { calls.console.emit(answer) }
                    calls.console.say(
                        container != nil
                            ? "The digits are right. The new keys are valid as soon as the device has confirmed."
                            : answer["state"]?.string == "ACTIVE"
                                ? "The device is enrolled."
                                : "The digits are right. The device is enrolled as soon as it has confirmed.")
                    return try calls.console.finish()
                } catch let refusal as ExitCode where refusal.rawValue == Outcome.Status.refused.rawValue {
                    continue
                }
            }
            throw ExitCode(Outcome.Status.refused.rawValue)
        }

        /// What the device's user types, with what the server says of it.
        static func lines(code: String, issuer: String, qr: String?, resets: Bool) -> [String] {
            let command = resets ? "renew" : "enroll"
            var lines = [
                "For other apps, the signing issuer:  \(issuer)",
                "On the device:  assent device \(command) \(ShellWord.quoted(code))",
            ]
            if let qr { lines.append(qr) }
            return lines.map { DisplayText.escapedForTerminal($0) }
        }
    }

    /// `assent device enroll`
    struct Enroll: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "enroll", abstract: "Enrol this device with a code, or with the text of a QR code.",
            discussion: """
                It shows digits: type them where the code was shown. Where the server wants a PIN, you choose it here.

                --here needs no code and no digits: you must have signed in here within the last minutes ('assent login'). This \
                installation then remembers you, and your PIN signs you in ('assent request --pin') and approves.

                Example:  assent device enroll ZFECE-ULFQP-… --name "My laptop"
                          assent device enroll --qr-file qr.txt
                          assent device enroll --here
                """)

        @Argument(help: "The code, as 'assent device invite' or the issuer's page shows it.")
        var code: String?

        @Option(name: .long, help: "A file with the text of the QR code.", completion: .file())
        var qrFile: String?

        @Flag(name: .long, help: "Enrol for the user who is signed in here, whom this installation then remembers.")
        var here = false

        @Option(
            name: .long,
            help: "The issuer's URL, whose code it is. Default: the server and realm of the client's file.")
        var issuer: String?

        @Option(name: .long, help: "The name of the device, by which you know it in lists.")
        var name: String?

        @OptionGroup var keys: DeviceKeyOptions

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard [code != nil, qrFile != nil, here].count(where: \.self) == 1 else {
                throw ValidationError("Give a code, --qr-file or --here.")
            }
            guard !here || issuer == nil else { throw ValidationError("--issuer belongs to a code.") }
        }

        func run() async throws {
            let console = result.console
            guard !here else { return try await enrollHere(console) }
            try await SigningProfile.run(client, console, keys: keys) { profile in
                let password = TerminalPassword(console: console)
                let enrolment = try await profile.device.enrol(try invite(profile), name: name) {
                    try password.enrolling($0)
                }
                console.say("Container \(enrolment.containerID)")
                if let digits = enrolment.digits {
                    console.showDigits(digits, user: enrolment.userName, issuer: enrolment.issuerName)
                }
                try client.load().keep()
                guard result.json else { return }
                console.emit(
                    JSONValue(omittingNil: [
                        "container": .string(enrolment.containerID), "user": .string(enrolment.userName),
                        "issuer": .string(enrolment.issuerName), "digits": enrolment.digits.map { .string($0) },
                    ]))
            }
        }

        private func invite(_ profile: SigningProfile) throws -> SigningInvite {
            if let code { return try SigningInvite(typed: code, issuer: issuer ?? profile.issuer) }
            return try SigningInvite(scanned: QRCodeFile.text(qrFile ?? ""))
        }
    }

    /// `assent device list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Print the containers of this device as JSON, one a line.")

        @OptionGroup var client: ClientOptions

        func run() async throws {
            let console = Console()
            try await SigningProfile.run(client, console) { profile in
                let containers = try await profile.device.containers()
                if containers.isEmpty { console.tellEmptyList() }
                for stored in containers {
                    let container = await current(stored, profile, console)
                    console.emit([
                        "container": .string(container.id), "issuer": .string(container.issuer),
                        "name": .string(container.name), "user": .string(container.userName),
                        "state": .string(container.state.rawValue), "serial": .string(container.serial),
                        "renewable": .string(container.renewableFrom.formatted(.iso8601)),
                        "expires": .string(container.expiresAt.formatted(.iso8601)),
                    ])
                }
            }
        }

        /// The container as the server knows it, where the digits may have been typed since it was asked last.
        private func current(
            _ container: SigningContainer, _ profile: SigningProfile, _ console: Console
        ) async -> SigningContainer {
            guard container.state == .unconfirmed else { return container }
            do {
                _ = try await container.status()
                return try await profile.device.container(container.id)
            } catch let error as any AssentError {
                console.warn(
                    DisplayText.escapedForTerminal("The server did not say whether it is active: \(error.detail)"))
            } catch {
                console.warn("The server did not say whether it is active.")
            }
            return container
        }
    }

    /// `assent device listen`
    struct Listen: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "listen",
            abstract: "Wait for transactions, show each, ask for an answer and sign it. Ctrl-C ends it.",
            discussion: """
                What goes wrong with one transaction is said, and it goes on: what is still open is shown again. \
                When the server cannot be reached, it tries again, at first after a second and later once a minute. \
                It ends with an error when this device can sign nothing any more.

                It also says what happens to your other devices. Keys that come near their end get successors by themselves; where \
                that needs your PIN or password, it only tells you.
                """)

        @OptionGroup var client: ClientOptions

        @OptionGroup var container: ContainerOption

        @Flag(name: .long, help: "End after the first transaction, also when it goes wrong.")
        var once = false

        func run() async throws {
            let console = Console()
            try await SigningProfile.run(client, console) { profile in
                for receipt in await profile.sendQueued(console) { console.say(receipt.line) }
                let container = try await profile.container(container.id)
                let status = try await container.status()
                guard status.state == .active else {
                    throw CommandFailure(
                        "The container is \(status.state.rawValue), and only an ACTIVE one may approve. Were the digits typed?"
                    )
                }
                console.say("Waiting for transactions of \(DisplayText.escapedForTerminal(container.userName)).")
                let events = ListenEvents(console: console, device: profile.device, container: container)
                let listening = Listening<SigningTransactions>(
                    transactions: { container.transactions(onEvent: { await events.hear($0) }) },
                    answer: { transaction in
                        let receipt = try await profile.answer(transaction, console)
                        console.say("Signed and sent: \(receipt.status), transaction \(receipt.transactionID).")
                    },
                    reconnect: {
                        _ = try await container.transactionIDs()
                        for receipt in await profile.sendQueued(console) { console.say(receipt.line) }
                    },
                    warn: { console.warn($0) }, pause: { try await Task.sleep(for: $0) }, once: once)
                try await listening.run()
            }
        }
    }

    /// `assent device evidence`
    struct Evidence: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "evidence",
            abstract: "Print the bundle of evidence of a transaction that you have decided, for 'assent verify'.",
            discussion: """
                You must have signed in ('assent login').

                Example:  assent device evidence ID >bundle.json
                """)

        @Argument(
            help: "The transaction, as 'assent device listen' has named it; behind '--' where it begins with a hyphen.")
        var id: String?

        // An id may begin with a hyphen.
        @Option(name: .long, parsing: .unconditional, help: "The same, as an option.")
        var transaction: String?

        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard (id == nil) != (transaction == nil) else { throw ValidationError("Name one transaction, by its id.") }
        }

        func run() async throws {
            let calls = SessionCalls(client)
            let path = IssuerPath.evidence.path(PercentEncoding.encode(id ?? transaction ?? ""))
            calls.console.emit(try await calls.send { .get("\($0("signing"))\(path)") })
            try calls.console.finish()
        }
    }

    /// `assent device rename`
    struct Rename: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rename",
            abstract: "Give a container another name, here and at the server.")

        @Argument(help: "The new name, 1 to 128 characters.")
        var name: String

        @OptionGroup var container: ContainerOption

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        func run() async throws {
            let console = result.console
            try await SigningProfile.run(client, console) { profile in
                let container = try await profile.container(container.id)
                try await container.rename(name)
                console.report(["container": .string(container.id), "name": .string(name)], "Done.")
            }
        }
    }

    /// `assent device remove`
    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Delete a container: its keys here at once, and at the server as soon as it is reached.")

        @OptionGroup var container: ContainerID

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        func run() async throws {
            let console = result.console
            try await SigningProfile.run(client, console) { profile in
                let isDone = try await profile.device.container(container.value).delete()
                console.report(
                    ["container": .string(container.value), "serverKnows": .bool(isDone)],
                    isDone
                        ? "Deleted, here and at the server."
                        : "Deleted here. The server was not reached: the next 'assent device listen' tells it.")
            }
        }
    }
}
