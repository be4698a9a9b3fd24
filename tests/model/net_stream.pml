/*
 * Model of streams that the guest opens (NET): both sides send, MAX may live at a time, entries are
 * used again. OPEN and CREDIT overtake data in the sender's queue but not on the carrier. State
 * names are those of lib/conn/chan_i.h. The window is one byte, one byte a direction and stream.
 *
 * Each end may send its byte and EOF, close after both EOFs, or abandon the stream at any moment.
 * Checked: an honest guest never opens more than the host has room for, no frame for a stream that
 * its receiver has forgotten, none after RESET, no more DATA than credit, every entry is forgotten
 * in the end, nothing gets stuck.
 *
 * Mutants that it catches: the guest forgets a stream before its own RESET is sealed (an OPEN then
 * overtakes it), or before the host's RESET came; RESET in the control queue.
 */
#define MAX 1   /* alive at a time */
#define TOTAL 3 /* opened one after the other */
#define CARRIER 1
#define QUEUE 4 /* a stream's frames: DATA, EOF, RESET, in a queue for all */

mtype = { OPEN, DATA, EOF, RESET, CREDIT };
mtype = { TX_OPEN, TX_EOF, TX_RESET_QUEUED, TX_RESET, RX_OPEN, RX_EOF, RX_RESET };

#define NONE 0
#define HOST 0
#define GUEST 1

typedef side {
	mtype tx[TOTAL];
	mtype rx[TOTAL];
	bool app[TOTAL];
	bool sent[TOTAL];   /* its byte */
	bool credit[TOTAL]; /* may send it */
	bool waits[TOTAL];  /* the peer's byte, not taken */
	byte alive;
	byte next;          /* the OPEN that may come or go */
};
side e[2];

chan carrier[2] = [CARRIER] of { mtype, byte }; /* towards HOST, GUEST */
chan ctl[2] = [2 * TOTAL] of { mtype, byte };     /* of HOST, GUEST */
chan bulk[2] = [QUEUE * TOTAL] of { mtype, byte };

inline set_up(w, s)
{
	e[w].tx[s] = TX_OPEN; e[w].rx[s] = RX_OPEN; e[w].app[s] = true; e[w].credit[s] = true;
	e[w].alive++
}

inline forget(w, s)
{
	if
	:: e[w].tx[s] == TX_RESET && e[w].rx[s] == RX_RESET ->
		e[w].tx[s] = NONE; e[w].rx[s] = NONE; e[w].alive--
	:: else
	fi
}

inline close(w, s)
{
	e[w].app[s] = false; e[w].waits[s] = false; e[w].tx[s] = TX_RESET_QUEUED;
	bulk[w]!RESET,s
}

/* Sealing: control first. */
proctype Out(byte w)
{
	mtype t; byte s;
end:	do
	:: atomic { nfull(carrier[1 - w]) && nempty(ctl[w]) -> ctl[w]?t,s; carrier[1 - w]!t,s }
	:: atomic { nfull(carrier[1 - w]) && empty(ctl[w]) && nempty(bulk[w]) -> bulk[w]?t,s;
		if
		:: t == RESET -> e[w].tx[s] = TX_RESET; forget(w, s)
		:: else
		fi;
		carrier[1 - w]!t,s }
	od
}

proctype In(byte w)
{
	mtype t; byte s;
end:	do
	:: atomic { carrier[w]?t,s ->
		if
		:: t == OPEN -> assert(w == HOST && s == e[w].next && e[w].alive < MAX);
			e[w].next++; set_up(w, s)
		:: t == DATA -> assert(e[w].rx[s] == RX_OPEN && !e[w].waits[s]);
			e[w].waits[s] = e[w].app[s]
		:: t == EOF -> assert(e[w].rx[s] == RX_OPEN); e[w].rx[s] = RX_EOF
		:: t == CREDIT -> assert(e[w].rx[s] != NONE && e[w].rx[s] != RX_RESET && !e[w].credit[s]);
			e[w].credit[s] = true
		:: t == RESET -> assert(e[w].rx[s] != NONE && e[w].rx[s] != RX_RESET);
			if
			:: !e[w].app[s] -> e[w].rx[s] = RX_RESET; forget(w, s)
			:: e[w].app[s] && e[w].rx[s] == RX_EOF && (e[w].waits[s] || e[w].tx[s] != TX_OPEN) ->
				e[w].rx[s] = RX_RESET /* complete, or once the sink took the rest */
			:: else -> e[w].rx[s] = RX_RESET; close(w, s)
			fi
		fi;
		s = 0; t = OPEN }
	od
}

/* What an application may do with stream @s; it need not do anything but end. */
proctype App(byte w; byte s)
{
	bool eof_told;
end:	do
	:: atomic { w == GUEST && e[w].next == s && e[w].alive < MAX && e[w].tx[s] == NONE ->
		e[w].next++; ctl[w]!OPEN,s; set_up(w, s) }
	:: atomic { e[w].app[s] && e[w].tx[s] == TX_OPEN && e[w].rx[s] != RX_RESET && e[w].credit[s] &&
		    !e[w].sent[s] -> e[w].sent[s] = true; e[w].credit[s] = false; bulk[w]!DATA,s }
	:: atomic { e[w].app[s] && e[w].tx[s] == TX_OPEN && (e[w].sent[s] || e[w].rx[s] == RX_RESET) ->
		e[w].tx[s] = TX_EOF;
		if
		:: e[w].rx[s] != RX_RESET -> bulk[w]!EOF,s
		:: else
		fi }
	:: atomic { e[w].app[s] && e[w].waits[s] -> e[w].waits[s] = false;
		if
		:: e[w].rx[s] == RX_OPEN -> ctl[w]!CREDIT,s
		:: else
		fi }
	/* everything came; the peer's RESET before that is told now */
	:: atomic { e[w].app[s] && !e[w].waits[s] && (e[w].rx[s] == RX_EOF || e[w].rx[s] == RX_RESET) &&
		    !eof_told -> eof_told = true;
		if
		:: e[w].rx[s] == RX_RESET && e[w].tx[s] == TX_OPEN -> close(w, s)
		:: else
		fi }
	:: atomic { e[w].app[s] && eof_told && e[w].tx[s] == TX_EOF -> close(w, s) }
#ifdef RESETS
	:: atomic { e[w].app[s] -> close(w, s) }
#endif
	od
}

init
{
	atomic {
		run Out(HOST); run Out(GUEST); run In(HOST); run In(GUEST);
		run App(HOST, 0); run App(GUEST, 0);
		run App(HOST, 1); run App(GUEST, 1);
		run App(HOST, 2); run App(GUEST, 2)
	};
	/* nothing gets stuck before every stream was opened, ended and forgotten */
	(e[HOST].next == TOTAL && e[GUEST].next == TOTAL && e[HOST].alive == 0 && e[GUEST].alive == 0 &&
	 empty(ctl[HOST]) && empty(ctl[GUEST]) && empty(bulk[HOST]) && empty(bulk[GUEST]))
}
