import AssentCore

extension PolicyCondition {
    /// Members that some type of condition has. AM exports members that a type does not use.
    private static let members = [
        "conditions", "condition", "authLevel", "authenticateToService", "properties", "ignoreValueCase", "startIp",
        "endIp", "authenticationStrategy", "strategySpecifier", "ttl", "dnsName", "cidr", "startTime", "endTime",
        "startDay", "endDay", "startDate", "endDate", "enforcementTimeZone", "maxSessionTime", "terminateSession",
        "requiredScopes",
    ]

    /// The types of AM that are not here, and what to use instead.
    private static let others = [
        "AMIdentityMembership":
            "there are no groups: name the users by the subject Identity, or keep what they belong to"
            + " in a session property (SetSessionPropertiesNode) and ask for SessionProperty",
        "AuthScheme": "there are no authentication modules: name a journey by AuthenticateToService",
        "AuthenticateToRealm": "leave it out: a session of another realm is never a caller of this one",
        "IdmUser": "there is no IDM: keep what it says in a session property (SetSessionPropertiesNode) and ask for"
            + " SessionProperty",
        "LDAPFilter":
            "there is no directory: keep what it says in a session property (SetSessionPropertiesNode) and ask"
            + " for SessionProperty",
        "LEAuthLevel": "use NOT of an AuthLevel that is one higher",
        "Policy": "a policy cannot refer to another one here: write its condition in this policy",
        "ResourceEnvIP": "use IPv4 or IPv6, with OR and AND",
        "Script": "policies run no code: use the conditions that are here, or decide in the service",
    ]

    init(_ settings: SettingsReader<Void>) {
        for member in Self.members { settings.ignore(member) }
        defer { settings.finish() }
        switch settings.string("type") {
        case "AND": self = .and(settings.list("conditions").map { PolicyCondition($0) })
        case "OR": self = .or(settings.list("conditions").map { PolicyCondition($0) })
        case "NOT": self = .not(PolicyCondition(settings.mapping("condition")))
        case "AuthLevel":
            let level = settings.json("authLevel")?.integer
            if level == nil { settings.refuse("authLevel", "must be a whole number") }
            self = .authLevel(level.map(Int.init(clamping:)) ?? .max)
        case "AuthenticateToService":
            self = .authenticateToService(settings.string("authenticateToService"))
        case "SessionProperty": self = Self.sessionProperty(settings)
        case "IPv4": self = Self.address(.ipv4, settings)
        case "IPv6": self = Self.address(.ipv6, settings)
        case "SimpleTime": self = SimpleTime(settings).map { .time($0) } ?? .or([])
        case "Session": self = Self.sessionAge(settings)
        case "OAuth2Scope":
            let scopes = settings.strings("requiredScopes")
            if scopes.isEmpty { settings.refuse("requiredScopes", "must name a scope") }
            self = .scopes(scopes)
        case "UsualNetwork": self = Self.usualNetwork(settings)
        case "Transaction": self = .transaction(TransactionCondition(settings))
        case let other:
            settings.refuse(
                "type",
                Self.others[other].map { "\(other) is not here: \($0)" }
                    ?? "must be AND, OR, NOT, AuthLevel, AuthenticateToService, SessionProperty, Session, IPv4, IPv6, "
                    + "SimpleTime, OAuth2Scope, UsualNetwork or Transaction")
            self = .or([])
        }
    }

    private static func sessionProperty(_ settings: SettingsReader<Void>) -> PolicyCondition {
        var properties: [String: [String]] = [:]
        let reader = settings.optionalMapping("properties")
        for name in reader?.keys ?? [] {
            properties[name] = reader?.optionalStrings(name, allowingEmpty: true)
        }
        if properties.isEmpty { settings.refuse("properties", "must name a property and its values") }
        return .sessionProperty(properties, ignoreCase: settings.bool("ignoreValueCase", default: true))
    }

    /// Addresses by `startIp` and `endIp`, by `cidr`, or by both.
    private static func address(_ family: IPAddress.Family, _ settings: SettingsReader<Void>) -> PolicyCondition {
        // AM exports an empty list where no name is asked for. Anything else asks for one, whatever its type.
        if let names = settings.json("dnsName"), names != .null, names.array?.isEmpty != true {
            settings.refuse(
                "dnsName", "the owner of an address decides which name it has: use startIp and endIp, or cidr")
        }
        var ranges: [AddressRange] = []
        if settings.has("startIp") || settings.has("endIp") || !settings.has("cidr") {
            let ends = ["startIp", "endIp"].compactMap { IPAddress(settings.string($0)) }
            if ends.count == 2, ends.allSatisfy({ $0.family == family }),
                let range = AddressRange(from: ends[0], to: ends[1])
            {
                ranges.append(range)
            } else {
                settings.refuse("startIp", "startIp and endIp must be \(family.rawValue) addresses in this order")
            }
        }
        for (index, text) in settings.strings("cidr").enumerated() {
            if let prefix = NetworkPrefix(text), prefix.first.family == family {
                ranges.append(.prefix(prefix))
            } else {
                let example = family == .ipv4 ? "10.0.0.0/8" : "2001:db8::/32"
                settings.refuse(
                    "cidr[\(index)]",
                    "must be an \(family.rawValue) address or prefix, for example \(example), without bits behind it")
            }
        }
        if settings.has("cidr"), ranges.isEmpty { settings.refuse("cidr", "must name a prefix") }
        return .address(family, ranges)
    }

    private static func usualNetwork(_ settings: SettingsReader<Void>) -> PolicyCondition {
        let (days, level) = (settings.json("days")?.integer, settings.json("level"))
        let longest = UsualNetworks.longestDays
        let isGood = days.map { (1...longest).contains($0) } ?? false
        if !isGood { settings.refuse("days", "must be a number of days from 1 to \(longest)") }
        let isLevel = level.map { (0...1000).contains($0.integer ?? -1) } ?? true
        if !isLevel { settings.refuse("level", "must be a level from 0 to 1000") }
        // Approvals that prove nothing meet level 0, also in a session that was taken away: who wants that says so.
        return .usualNetwork(
            days: isGood ? days ?? 0 : 0, level: isLevel ? Int(clamping: level?.integer ?? 1) : .max)
    }

    private static func sessionAge(_ settings: SettingsReader<Void>) -> PolicyCondition {
        if settings.bool("terminateSession", default: false) {
            settings.refuse(
                "terminateSession", "a question ends no session: use sessions.maxMinutes of the realm, or leave it out")
        }
        let minutes = settings.json("maxSessionTime")
        let isGood = minutes?.integer.map { (1...525_600).contains($0) } ?? false
        if !isGood { settings.refuse("maxSessionTime", "must be a number of minutes from 1 to 525600") }
        return .sessionAge(minutes: isGood ? minutes?.integer ?? 0 : 0)
    }
}

extension SimpleTime {
    fileprivate init?(_ settings: SettingsReader<Void>) {
        let times = Self.span(settings, "startTime", "endTime", "HH:mm, up to 24:00", Self.minutes)
        let days = Self.span(settings, "startDay", "endDay", "sun, mon, tue, wed, thu, fri or sat", Self.weekday)
        let dates = Self.span(settings, "startDate", "endDate", "a date, yyyy:MM:dd") { CivilDate($0)?.days }
        if times == nil, days == nil, dates == nil {
            settings.refuse(
                nil, "SimpleTime needs startTime and endTime, startDay and endDay, or startDate and endDate")
        }
        if let times, times.first == times.last {
            settings.refuse("endTime", "is startTime: a whole day is 00:00 to 24:00")
        }
        if let dates, dates.last < dates.first { settings.refuse("endDate", "comes before startDate") }
        let name = settings.optionalString("enforcementTimeZone")
        let zone = name.flatMap { PolicyTimeZone($0) }
        if name != nil, zone == nil {
            settings.refuse(
                "enforcementTimeZone", "is not known: for example Europe/Berlin, GMT or GMT+2. An empty one is left out"
            )
        }
        self.init(minutes: times, days: days, dates: dates, zone: zone ?? .greenwich)
    }

    /// A pair of keys; `nil` without both, or when they cannot be read.
    private static func span(
        _ settings: SettingsReader<Void>, _ start: String, _ end: String, _ form: String, _ read: (String) -> Int?
    ) -> Span? {
        guard settings.has(start) || settings.has(end) else { return nil }
        var numbers: [Int] = []
        for key in [start, end] {
            guard let text = settings.optionalString(key) else {
                settings.refuse(key, "is missing: \(start) and \(end) come together")
                continue
            }
            if let number = read(text) { numbers.append(number) } else { settings.refuse(key, "must be \(form)") }
        }
        return numbers.count == 2 ? Span(first: numbers[0], last: numbers[1]) : nil
    }
}

extension TransactionCondition {
    fileprivate init(_ settings: SettingsReader<Void>) {
        let name = settings.string("authenticationStrategy", default: Strategy.tree.rawValue)
        let strategy = Strategy(rawValue: name)
        if strategy == nil {
            let known = Strategy.allCases.map(\.rawValue).joined(separator: " or ")
            settings.refuse("authenticationStrategy", "must be \(known)")
        }
        let ttl = settings.json("ttl")
        let isGood = ttl.map { (10...3600).contains($0.integer ?? 0) } ?? true
        if !isGood { settings.refuse("ttl", "must be a number of seconds from 10 to 3600") }
        self.init(
            strategy: strategy ?? .tree, specifier: settings.string("strategySpecifier"),
            ttl: isGood ? ttl?.integer ?? Self.defaultTTL : Self.defaultTTL)
    }
}
