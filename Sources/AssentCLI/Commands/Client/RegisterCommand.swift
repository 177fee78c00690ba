import ArgumentParser
import Assent
import Foundation

/// `assent register`
struct RegisterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Register this installation of an app as a client of its own, with a key that only it has.",
        discussion: """
            The file's client.id is the app's id at the server. The key provider of the profile's vault makes the key, and \
            nothing prints its private half. An installation that has registered keeps its id; the server is told when the \
            file has another redirect URI or other scopes since.

            Where the file says registration you do not need this command: 'assent login' registers by itself. It is for a \
            file that does not say so, for an initial access token that is in no file, and to see what the server says.

            Example:  assent register --config client.yaml --token-file token.txt
            """)

    @OptionGroup var client: ClientOptions

    @Option(
        name: .long, help: "A file that holds the initial access token, and that only you may read.",
        completion: .file())
    var tokenFile: String?

    @Option(name: .customLong("token-fd"), help: "A file descriptor to read the initial access token from.")
    var tokenDescriptor: Int32?

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    func validate() throws {
        guard tokenFile == nil || tokenDescriptor == nil else {
            throw ValidationError("Name a file or a descriptor for the initial access token, not both.")
        }
    }

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            var profile = try client.load()
            guard profile.file.clientKey == nil else {
                throw CommandFailure(
                    "The client's file has clientKey: this client is known by that key and cannot register. "
                        + "Take clientKey out if client.id is an app's id.")
            }
            profile.file.registration = profile.file.registration ?? .init()
            profile.initialAccessToken = try SecretSource.read(
                file: tokenFile, descriptor: tokenDescriptor, ClientFile.Registration.tokenName, isPrivate: true)
            let assent = try profile.assent()
            let before = try await assent.registration?.current()
            let instance = try await assent.registration?.register()
            await assent.shutdown()
            try profile.keep()
            if let instance { report(instance, isNew: instance.clientID != before?.clientID, profile, console) }
        }
    }

    private func report(
        _ instance: RegisteredInstance, isNew: Bool, _ profile: ClientProfile, _ console: Console
    ) {
        guard !json else {
            var result = instance.status
            result["new"] = .bool(isNew)
            return console.emit(.object(result))
        }
        let id = DisplayText.escapedForTerminal(instance.clientID)
        console.say(console.styled(isNew ? "Registered as \(id)." : "This is \(id) already.", .green))
        console.say("Next:  \(profile.typed("login"))")
    }
}

/// `assent unregister`
struct UnregisterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unregister",
        abstract: "End this installation's registration at the server, then destroy its key here.",
        discussion: """
            You are signed out first. When the server does not answer, nothing but that is done, and the command may be \
            repeated. --forget does not ask the server: its operator can end the registration there.
            """)

    @OptionGroup var client: ClientOptions

    @Flag(name: .long, help: "Forget the registration here and do not tell the server, for a key that is gone.")
    var forget = false

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            var profile = try client.load()
            guard profile.file.clientKey == nil else {
                throw CommandFailure("The client's file has clientKey: this client has not registered.")
            }
            let isOfFile = profile.file.registration != nil
            profile.file.registration = profile.file.registration ?? .init()
            let assent = try profile.assent()
            let instance = try await assent.registration?.current()
            guard instance != nil || isOfFile else {
                // Without a registration no client could end the sign-in.
                await assent.shutdown()
                return report(nil, console)
            }
            let result: SignOutResult
            if forget {
                result = await assent.signOut()
                try await assent.registration?.forget()
            } else {
                result = try await assent.unregister()
            }
            await assent.shutdown()
            report(instance, console)
            for undone in result.undone where forget {
                console.warn(DisplayText.escapedForTerminal("\(undone.step.goesOn) \(undone.reason)"))
            }
        }
    }

    private func report(_ instance: RegisteredInstance?, _ console: Console) {
        guard !json else {
            return console.emit([
                "client_id": (instance?.clientID).map(JSONValue.string) ?? .null, "serverKnows": .bool(!forget),
            ])
        }
        guard let instance else { return console.say("This installation was not registered.") }
        let id = DisplayText.escapedForTerminal(instance.clientID)
        if forget {
            console.say("\(id) is forgotten here. The server still has it: its operator can end it with")
            console.say("    assent admin registrations end '\(id.replacing("'", with: "'\\''"))'")
        } else {
            console.say("\(id) has ended, with all that the server gave to it.")
        }
    }
}

extension RegisteredInstance {
    /// What scripts read.
    var status: JSONObject {
        var status: JSONObject = ["client_id": .string(clientID), "jkt": .string(keyThumbprint)]
        status["client_name"] = clientName.map(JSONValue.string)
        status["registered_at"] = registeredAt.map { .integer(Int64($0.timeIntervalSince1970)) }
        return status
    }

    /// What people read.
    var line: String {
        let since = registeredAt.map { ", since \($0.formatted(.iso8601))" } ?? ""
        return DisplayText.escapedForTerminal("Registration:  \(clientID)\(since)")
    }
}
